// Package replset is an embedded MongoDB replica set for development and tests: one to seven members in this process,
// each behind its own TCP port (or on an in-memory network), with elections, an oplog, write and read concerns, SCRAM,
// and faults that a test can cause: StepDown, Kill, Restart, Partition, Hang, Delay, FailCommand.
//
// In a test one line is enough:
//
//	set := replset.Run(t, replset.Options{Members: 3})
//	client, err := sextant.Connect(ctx, set.URI())
//
// It is not a database for production: data is in memory and ends with the process (Kill and Restart keep it), there
// are no roles, and what is not implemented is refused with MongoDB's error codes.
//
// A Set owns all goroutines of its members; Close ends and waits for them. Set and Member are safe for concurrent use.
package replset
