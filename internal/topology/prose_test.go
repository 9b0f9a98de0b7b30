package topology

import (
	"errors"
	"testing"
	"time"
)

// TestProseSelection2RoundTripsAreAveragedAndForgotten is prose test 2 of "server selection". Broken by taking a negative
// sample, or by an average that outlives the member's failure.
func TestProseSelection2RoundTripsAreAveragedAndForgotten(t *testing.T) {
	d := New(Config{Seeds: []string{"a:1"}, SetName: "rs0"}, epoch)
	hello := func(rtt time.Duration) {
		s, err := ParseHello("a:1", reply('p', "dc", "east"), rtt, epoch)
		if err != nil {
			t.Fatal(err)
		}
		d, _ = d.Apply(HelloReply{Server: s}, epoch)
	}
	is := func(what string, want time.Duration) {
		t.Helper()
		if got := d.Server("a:1").RTT; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	hello(10 * time.Millisecond)
	is("the first sample", 10*time.Millisecond)
	hello(20 * time.Millisecond)
	is("the second sample", 12*time.Millisecond)
	d, _ = d.Apply(RTTSample{Addr: "a:1", RTT: -time.Millisecond}, epoch)
	is("a negative sample", 12*time.Millisecond)
	hello(-time.Millisecond)
	is("a reply that was not timed", 12*time.Millisecond)
	d, _ = d.Apply(CheckFailed{Addr: "a:1", Err: errors.New("lost")}, epoch)
	is("a failure", 0)
	hello(40 * time.Millisecond)
	is("the first sample after the failure", 40*time.Millisecond)
}
