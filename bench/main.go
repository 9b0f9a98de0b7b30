// Command bench measures package bson beside the official driver's and beside code written by hand, in one process, the
// candidates taking turns, and holds what it finds to the floors that this project has promised.
//
//	go run .            # prints the table
//	go run . -check     # the same; fails if a floor does not hold
//	go run . -only D    # only the groups whose name contains "D"
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	check := flag.Bool("check", false, "fail if a floor does not hold")
	only := flag.String("only", "", "run the groups whose name contains this")
	rounds := flag.Int("rounds", 151, "rounds a group")
	slice := flag.Duration("slice", time.Millisecond, "time of one candidate in one round")
	onWall := flag.Bool("wall", false, "measure time on the wall instead of time of the processor")
	flag.Parse()
	now := cpu
	if *onWall {
		now = wall
	}

	groups, err := allGroups()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(header)
	failed := 0
	for _, g := range groups {
		if !strings.Contains(g.name, *only) {
			continue
		}
		for _, line := range g.judge(measure(g.candidates, *rounds, *slice, now)) {
			fmt.Println(line.text)
			if !line.ok {
				failed++
			}
		}
	}
	if failed > 0 {
		fmt.Printf("%d floors do not hold\n", failed)
		if *check {
			os.Exit(1)
		}
	}
}
