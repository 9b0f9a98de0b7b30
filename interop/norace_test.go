//go:build !race

package interop

// orderCount is how many orders are imported.
const orderCount = 100_000
