// Package store holds one member's data in memory, multi-version by copy on write.
//
// A Snapshot is an immutable root: every collection, index, the oplog and the
// retry history as they were right after one write transaction. Readers take a
// snapshot and never lock. One writer at a time works on copies of the trees it
// touches (the trees share all untouched nodes) and publishes a new root at the
// end, so that majority reads and rollback are a matter of choosing an older root.
//
// A Journal keeps a Store in a file; the Store knows nothing of it.
//
// The package starts no goroutine. Store is safe for concurrent use; a Tx belongs
// to the function it was given to; Snapshot, Coll and Index are immutable once
// published.
//
// Oplog entries are written as members of a real set write them. Updates made by
// operators are logged as {$v:1, $set, $unset} of dotted paths, replacements as
// the whole document; both are idempotent.
package store
