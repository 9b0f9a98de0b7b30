package connstring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestHostsFromDNSMustLieBelowTheDomain(t *testing.T) {
	for _, c := range []struct{ host, suffix, target, want string }{
		{"a.example.com", "", "db1.example.com.", "db1.example.com:1"},
		{"a.example.com", "", "DB1.Eu.EXAMPLE.com", "db1.eu.example.com:1"},
		{"a.example.com", "", "a.example.com.", "a.example.com:1"}, // itself, with three parts
		{"a.example.com", "", "example.com.", ""},
		{"a.example.com", "", "db.badexample.com.", ""},
		{"a.example.com", "", "db.example.com.evil.org.", ""},
		{"example.com", "", "db.example.com", "db.example.com:1"},
		{"example.com", "", "example.com", ""},
		{"localhost", "", "db.localhost", "db.localhost:1"},
		{"localhost", "", "localhost", ""},
		{"a.b.example.com", "", "db.example.com", ""},
		{"a.b.example.com", "example.com", "db.example.com", "db.example.com:1"},
		{"a.example.com", "hosts.example.net", "db.hosts.example.net.", "db.hosts.example.net:1"},
		{"a.example.com", "hosts.example.net", "db.example.com.", ""},
		{"a.example.com", "hosts.example.net", "hosts.example.net.", ""},
		{"example.com", "example.com", "db.example.com", "db.example.com:1"},
		{"a.bücher.de", "", "db.xn--bcher-kva.de.", "db.xn--bcher-kva.de:1"},
		{"a.xn--bcher-kva.de", "", "db.Bücher.de.", "db.xn--bcher-kva.de:1"},
		{"a.example.com", "", ".", ""},
		{"a.example.com", "", "", ""},
		{"a.example.com", "", "10.0.0.1", ""},
		{"a.example.com", "", "db..example.com", ""},
		{"a.example.com", "", "d b.example.com", ""},
	} {
		host, err := NormalHost(c.host)
		if err != nil {
			t.Fatal(err)
		}
		q := &Lookup{Host: host, Suffix: c.suffix}
		hosts, refused := q.Judge([]Record{{c.target, 1}})
		if strings.Join(hosts, " ") != c.want || len(hosts)+len(refused) != 1 {
			t.Errorf("%s (suffix %q) to %s: %q, %v", c.host, c.suffix, c.target, hosts, refused)
		}
		if c.want == "" && !strings.Contains(refused[0].Error(), q.Name()) {
			t.Errorf("the record is not named: %v", refused[0])
		}
	}
	if _, refused := (&Lookup{Host: "a.b.c"}).Judge([]Record{{"h.b.c.", 0}}); len(refused) != 1 {
		t.Error("port 0 passes")
	}
}

func TestAValidatorJudgesInPlaceOfTheDomain(t *testing.T) {
	no := errors.New("not mine")
	var asked []string
	q := &Lookup{Host: "a.example.com", Validate: func(host string) error {
		asked = append(asked, host)
		if host == "b.evil.com" {
			return no
		}
		return nil
	}}
	hosts, refused := q.Judge([]Record{{"A.EVIL.com.", 1}, {"b.evil.com", 2}, {"a.evil.com", 1}})
	if !slices.Equal(hosts, []string{"a.evil.com:1"}) || len(refused) != 1 || !errors.Is(refused[0], no) || asked[0] != "a.evil.com" {
		t.Errorf("%q, %v, asked for %q", hosts, refused, asked)
	}
}

func TestTheNameAskedForHasTheService(t *testing.T) {
	if got := (&Lookup{Host: "a.b.c"}).Name(); got != "_mongodb._tcp.a.b.c" {
		t.Error(got)
	}
	if got := (&Lookup{Host: "a.b.c", Service: "own"}).Name(); got != "_own._tcp.a.b.c" {
		t.Error(got)
	}
}

func TestChanceChoosesSoManyHostsAndEachAsOften(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	for _, most := range []int{0, 4, 5, -1} {
		if got := Choose(hosts, most, nil); !slices.Equal(got, hosts) {
			t.Errorf("%d: %q", most, got)
		}
	}
	count := map[string]int{}
	for i := range 24 { // every sequence of chances there is: 4 * 3 * 2
		rest := i
		got := Choose(hosts, 2, func(n int) int { k := rest % n; rest /= n; return k })
		if len(got) != 2 || got[0] == got[1] {
			t.Fatalf("%q", got)
		}
		for _, h := range got {
			count[h]++
		}
	}
	for _, h := range hosts {
		if count[h] != 12 || hosts[0] != "a" {
			t.Errorf("%v, and the list is %q", count, hosts)
		}
	}
}

func TestTXTGivesDefaultsAndNothingElse(t *testing.T) {
	o, warnings, err := ParseTXT("a.b.c", []string{"replicaSet=rs0&authSource=%24external&loadBalanced=false"})
	if err != nil || o.ReplicaSet != "rs0" || o.AuthSource != "$external" || o.LoadBalanced == nil || *o.LoadBalanced || len(warnings) > 0 {
		t.Errorf("%+v, %v, %v", o, warnings, err)
	}
	o, warnings, err = ParseTXT("a.b.c", []string{"loadBalanced=maybe"})
	if err != nil || o.LoadBalanced != nil || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "TXT record of a.b.c") {
		t.Errorf("%+v, %v, %v", o, warnings, err)
	}
	if o, warnings, err = ParseTXT("a.b.c", nil); err != nil || o.ReplicaSet != "" || warnings != nil {
		t.Errorf("%+v, %v, %v", o, warnings, err)
	}
	for record, want := range map[string]string{
		"authSource":          "option 1 is not of the form name=value",
		"authSource=":         "authSource is empty",
		"authSource=%zz":      "hexadecimal",
		"ssl=false":           "holds option ssl: only authSource, replicaSet and loadBalanced",
		"socketTimeoutMS=500": "option socketTimeoutMS",
		"v=spf1 -all":         "option v",
		"a b=hunter2":         "holds option 1:",
	} {
		if _, _, err := ParseTXT("a.b.c", []string{record}); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "TXT record of a.b.c") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", record, err)
		}
	}
	if _, _, err := ParseTXT("a.b.c", []string{"replicaSet=a", "authSource=b"}); err == nil || !strings.Contains(err.Error(), "2 TXT records") {
		t.Error(err)
	}
}

func TestNamesAreMadeALabels(t *testing.T) {
	for in, want := range map[string]string{
		"Bücher.example": "xn--bcher-kva.example", "MÜNCHEN.de": "xn--mnchen-3ya.de", "点看.example": "xn--3pxu8k.example",
		"пример.испытание": "xn--e1afmkfd.xn--80akhbyknj4f", "faß.de": "xn--fa-hia.de",
		"他们为什么不说中文": "xn--ihqwcrb4cv8a8dqg056pqjye", "a.b.": "a.b", "X": "x", "3年b組金八先生": "xn--3b-ww4c5e180e575a65lsy2b",
	} {
		if got, err := NormalHost(in); got != want || err != nil {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	long := strings.Repeat("a", 64)
	for _, in := range []string{"", ".", "a..b", "a. b", "1.2.3.4", long + ".b", strings.Repeat("ü", 63), strings.Repeat("ü", 9999),
		strings.Repeat("abc.", 80) + "d", "a/b", "\xff"} {
		if got, err := NormalHost(in); err == nil {
			t.Errorf("%.20q: %q", in, got)
		}
	}
}

func TestPublicSuffixesAreNoSuffixes(t *testing.T) {
	for in, want := range map[string]string{
		".mydomain.net.": "mydomain.net", "MyDomain.Net": "mydomain.net", "localhost": "localhost", "internal": "internal",
		"bücher.de": "xn--bcher-kva.de", "a.co.uk": "a.co.uk", "co.example.com": "co.example.com", "uk.com": "uk.com",
	} {
		if got, err := NormalSuffix(in); got != want || err != nil {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", ".", "net", ".com.", "co.uk", "CO.UK", "com.au", "or.jp", "a b.c", "a..b"} {
		if got, err := NormalSuffix(in); err == nil || !strings.Contains(err.Error(), "srvAllowedHostsSuffix") {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
}

// FuzzSRV: whatever DNS answers to whatever string, nothing panics, no error shows the password, what passes lies below
// the domain, and what TXT gives is one of three options.
func FuzzSRV(f *testing.F) {
	f.Add("a.example.com/?srvMaxHosts=1", "db.example.com.", uint16(27017), "replicaSet=rs0&authSource=db")
	f.Add("a.b.c/?srvAllowedHostsSuffix=.x.y&srvServiceName=own", ".", uint16(0), "ssl=false")
	f.Add("localhost/?replicaSet=a", "xn--", uint16(1), "authSource=%")
	f.Add("bücher.de", "ü.BÜCHER.de", uint16(1), "loadBalanced=true;a")
	f.Fuzz(func(t *testing.T, rest, target string, port uint16, record string) {
		const secret = "hunter2IsTheSecret"
		if strings.Contains(rest, "hunter2") {
			return
		}
		u, err := Parse("mongodb+srv://joe:" + secret + "@" + rest)
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the error holds the password: %v", err)
			}
			return
		}
		if u.Hosts != nil || u.SRVHost == "" || strings.Contains(fmt.Sprint(u, u.Warnings), secret) {
			t.Fatalf("%+v", u)
		}
		q := &Lookup{Host: u.SRVHost, Service: u.SRVServiceName}
		if u.SRVAllowedHostsSuffix != "" {
			if q.Suffix, err = NormalSuffix(u.SRVAllowedHostsSuffix); err != nil {
				t.Fatalf("the suffix passed Parse: %v", err)
			}
		}
		hosts, refused := q.Judge([]Record{{target, port}, {"x." + q.Domain() + ".", 1}})
		if len(hosts)+len(refused) != 2 && hosts[0] != hosts[len(hosts)-1] {
			t.Fatalf("%q and %v", hosts, refused)
		}
		for _, h := range hosts {
			if !strings.Contains(h, "."+q.Domain()+":") || strings.ToLower(h) != h {
				t.Fatalf("%s lies not below %s", h, q.Domain())
			}
		}
		o, _, err := ParseTXT(u.SRVHost, []string{record})
		if err != nil {
			return
		}
		o.AuthSource, o.ReplicaSet, o.LoadBalanced = "", "", nil
		for _, row := range table {
			if o.Value(row.name) != nil {
				t.Fatalf("TXT set %s", row.name)
			}
		}
	})
}
