package compress

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

var all = []ID{Noop, Snappy, Zlib, Zstd}

func samples() map[string][]byte {
	noise := make([]byte, 40<<10)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(noise)
	return map[string][]byte{
		"nothing": {}, "one byte": {7}, "text": []byte(strings.Repeat("a document much like the last one; ", 400)),
		"noise": noise, "zeros": make([]byte, 300<<10),
	}
}

func TestWhatIsPackedUnpacks(t *testing.T) {
	for _, level := range []int{-1, 0, 1, 9} {
		c := New(level)
		for name, src := range samples() {
			for _, id := range all {
				packed, err := c.Append([]byte("head"), src, id)
				if err != nil || !bytes.HasPrefix(packed, []byte("head")) {
					t.Fatalf("%s, %v: %v", name, id, err)
				}
				got, err := c.Unpack([]byte("head"), packed[4:], id, len(src))
				if err != nil || !bytes.HasPrefix(got, []byte("head")) || !bytes.Equal(got[4:], src) {
					t.Fatalf("%s, %v: %d bytes of %d came back, %v", name, id, len(got), len(src), err)
				}
			}
		}
	}
}

func TestUnpackWantsExactlyTheDeclaredSize(t *testing.T) {
	c := New(DefaultLevel)
	for name, src := range samples() {
		for _, id := range all {
			packed, err := c.Append(nil, src, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{len(src) - 1, len(src) + 1, len(src) / 2, 2*len(src) + 1, -1} {
				if got, err := c.Unpack(nil, packed, id, size); err == nil && size != len(src) {
					t.Errorf("%s, %v: %d bytes unpacked as %d", name, id, len(got), size)
				}
			}
		}
	}
}

func TestLyingSizeCostsNoMemory(t *testing.T) {
	c := New(DefaultLevel)
	for _, id := range all {
		packed, err := c.Append(nil, []byte("short"), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Unpack(nil, packed, id, 48<<20); err == nil { // warms up
			t.Fatalf("%v: 5 bytes passed for 48 MB", id)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 10 {
			if _, err := c.Unpack(nil, packed, id, 48<<20); !errors.Is(err, ErrSize) {
				t.Fatalf("%v: %v", id, err)
			}
		}
		runtime.ReadMemStats(&after)
		if spent := (after.TotalAlloc - before.TotalAlloc) / 10; spent > 1<<20 {
			t.Errorf("%v: %d bytes were allocated for a message of 5", id, spent)
		}
	}
}

func TestUnknownCompressorIsRefused(t *testing.T) {
	c := New(DefaultLevel)
	if _, err := c.Append(nil, nil, 4); err == nil {
		t.Error("packed by compressor 4")
	}
	if _, err := c.Unpack(nil, nil, 255, 0); err == nil || !strings.Contains(err.Error(), "255") {
		t.Errorf("unpacked by compressor 255: %v", err)
	}
	if _, ok := ByName("noop"); ok {
		t.Error("noop can be negotiated")
	}
	for _, name := range Names() {
		if id, ok := ByName(name); !ok || id.String() != name {
			t.Errorf("%s is %v", name, id)
		}
	}
}

func TestCodecServesManyAtOnce(t *testing.T) {
	c := New(DefaultLevel)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			src := bytes.Repeat([]byte{byte(i), 1, 2, 3}, 5000)
			for _, id := range all {
				packed, err := c.Append(nil, src, id)
				if err != nil {
					t.Error(err)
				}
				if got, err := c.Unpack(nil, packed, id, len(src)); err != nil || !bytes.Equal(got, src) {
					t.Errorf("%v: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAnyBytesSurvive(t *testing.T) {
	c := New(DefaultLevel)
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOf(rapid.Byte()).Draw(t, "src")
		id := rapid.SampledFrom(all).Draw(t, "id")
		packed, err := c.Append(nil, src, id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Unpack(nil, packed, id, len(src)); err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%v: %x, %v", id, got, err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	c := New(DefaultLevel)
	for _, id := range all {
		packed, _ := c.Append(nil, []byte("a document, a document"), id)
		f.Add(uint8(id), packed, 22)
	}
	f.Fuzz(func(t *testing.T, id uint8, src []byte, size int) {
		size %= 1 << 20
		if out, err := c.Unpack(nil, src, ID(id), size); err == nil && len(out) != size {
			t.Errorf("%d bytes, declared %d", len(out), size)
		}
	})
}
