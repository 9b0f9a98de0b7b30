// Package command is one member of the embedded replica set: it listens, parses messages, runs commands and takes its
// part in the set. One file holds one family of commands; member.go joins the data (store) with the protocol (repl).
//
// Goroutines of a Member, all waited for by Close and Kill: one owner of the repl.Node, one that accepts, one a
// connection (plus a watcher while a command of it waits), two that follow the sync source, and one for each message to
// another member that is on its way. Everything exported is safe for concurrent use unless it says otherwise.
//
// To add a command: write its Handler in the file of its family, add its Spec to that file's list (the lists are joined
// in dispatch.go), read data with Member.Read, change it with Member.Write, and refuse with mongoerr.Server. Write
// concern, cluster time, labels and the ok field are the dispatcher's affair.
package command
