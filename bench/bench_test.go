package main

import "testing"

// Benchmark runs every candidate by itself, for profiles: go test -bench 'encode_struct_flat/append' -cpuprofile cpu.out
func Benchmark(b *testing.B) {
	groups, err := allGroups()
	if err != nil {
		b.Fatal(err)
	}
	for _, g := range groups {
		for _, c := range g.candidates {
			b.Run(g.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				c.run(b.N)
			})
		}
	}
}
