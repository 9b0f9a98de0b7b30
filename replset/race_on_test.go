//go:build race

package replset

// raceEnabled says that times are several times longer than without the race detector.
const raceEnabled = true
