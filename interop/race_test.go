//go:build race

package interop

// orderCount is how many orders are imported: few where every access of memory is checked. make interop tests both ways.
const orderCount = 5_000
