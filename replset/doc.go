// Package replset is an embedded MongoDB replica set for development and tests: one to seven members in this process,
// each behind its own TCP port (or on an in-memory network), with elections, an oplog, write and read concerns, SCRAM,
// and faults that a test can cause: StepDown, Kill, Restart, Partition, Hang, Delay, Throttle, Lag,
// CutAfter, FailCommand.
//
// In a test one line is enough:
//
//	set := replset.Run(t, replset.Options{Members: 3})
//	client, err := sextant.Connect(ctx, set.URI())
//
// It is not a database for production: data is in memory and ends with the process (Kill and Restart keep it), there
// are no roles, and what is not implemented is refused with MongoDB's error codes.
//
// AddMember, RemoveMember and Reconfigure change the set while it runs, as does replSetReconfig by any client. What a
// member takes back after a partition is not lost to a test: see RolledBack.
//
// With Options.Dir every member keeps its data, vote and configuration in a file. What was confirmed with j: true by a set
// of one member, or by a majority of any set, is there after the process was killed or the machine crashed at any moment,
// as long as the disk keeps what it says it has synced. A later Start with the same folder goes on there: same data, oplog
// and addresses (where the ports are free), a later term. Kill then means what it says: Restart reads the file. Data is
// still held in memory as a whole; the file is read once, when the member starts.
//
// With Options.TLS members speak TLS alone, with certificates of the set's own authority. Set.TLSConfig is what a client in
// this process needs; the URI names the files of TLS.Dir for others. Certify gives a member a bad certificate.
//
// A Set owns all goroutines of its members; Close ends and waits for them. Set and Member are safe for concurrent use.
package replset
