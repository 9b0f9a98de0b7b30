// Package sextant is a MongoDB driver that knows, and can say, where every read goes.
//
// A Client knows one deployment, most often a replica set. Give it any member as a seed, and it finds the rest, watches
// them, and sends writes to the primary and each read to where its read preference points:
//
//	client, err := sextant.Connect(ctx, "mongodb://localhost:27017,localhost:27018/?replicaSet=rs0&readPreference=nearest")
//	defer client.Close(ctx)
//	people := sextant.CollectionOf[Person](client.Database("shop"), "people")
//	res, err := people.InsertOne(ctx, Person{Name: "joe"})
//	joe, err := people.FindOne(ctx, bson.M{"_id": res.InsertedID})
//
// Runnable programs for all that follows are among the examples of this page.
//
// # Handles
//
// Database and Collection are handles: immutable, cheap, safe for concurrent use. Collection[T] decodes into T; what
// changes the type is a function, as a Go method has no type parameters of its own: CollectionOf, As, Aggregate, Distinct,
// RunCommandAs. Options are plain structs, passed last, none or one; the zero value is the default, and optional scalars
// are pointers, set with new(true) or new(int32(5)).
//
// # Where a read goes
//
// Read preference, read concern and write concern are set on the client, the database or the collection, and the read
// preference on every single read too. What is unset is inherited, the call wins, and the effective value can be read
// at each level. A handle takes a copy of its parent's settings when it is made; With makes a copy with others.
//
// Writes go to the primary whatever the read preference. So do the listings (of databases, collections, indexes) and
// RunCommand, unless the call itself gives a read preference: they do not inherit.
//
// Cursor.Server tells who answered; Client.Hosts is what the client knows of each member; Client.Explain says why an
// operation would go where it would go, and how likely. A Selector is a rule for one call; a Pin, from Client.Pin, keeps
// reads at one member until it may not be read any more. WithReport tells of the operations under a context who answered,
// which attempts were made and where the time went.
//
// # Identity
//
// Every inserted document gets an _id, a bson.ObjectID as its first element, unless it has one. A document has one if it
// encodes with one, whatever its value or type; only a struct's _id field that is a zero ObjectID, a nil pointer or a nil
// interface counts as none. The generated id is in the result, and it is written back into a struct passed by pointer,
// into a map and into a *bson.D, before the document is sent. A string of 24 hexadecimal digits is not an ObjectID and
// never matches one: use bson.ObjectIDFromHex. So do not give a struct an _id field of type string that is left out when
// empty: the document gets an ObjectID then, which that field cannot hold when it is read back.
//
// # Values
//
// How Go values become BSON and the other way round is chosen by bson.Options, in Config.BSON or for a database or a
// collection: DatabaseOptions.BSON, CollectionOptions.BSON. All that a call encodes and decodes follows it: documents,
// filters, updates, pipelines, comments, cursors, results. Options.Strings says what documents keep in memory: see Cursor.
//
// # Failover
//
// A read, and a write of a single document, that meets a failed connection or a member that is no longer the primary is
// tried once more, after waiting for a new primary if need be, and done once: the server knows the write again. UpdateMany
// and DeleteMany are not retried, nor is a command of a BulkWrite that has one. A context's deadline bounds all of it:
// selection, waiting, retry.
//
// # Errors
//
// Errors are of package mongoerr: which command, which namespace, which member, how many attempts, at which stage, the
// server's code and labels, the cause. The first line is the plain sentence. When no member can serve, it says what was
// wanted and why, and a line for each member follows. ErrNoDocuments is returned as it is.
//
// # If you come from another driver
//
//	slaveOk, setSlaveOkay           readPreference=secondaryPreferred, readpref.SecondaryPreferred()
//	getSlave, switchSlave           Client.Pin; Pin.Server, Pin.Switch; or Cursor.Server
//	getHosts, rs.status             Client.Hosts; Member.Health, State, StateStr
//	connectionsPerHost              maxPoolSize
//	acceptableLatencyMS             localThresholdMS
//	requiredReplicaSetName          replicaSet
//	save                            ReplaceOne with Upsert
//	findAndModify                   FindOneAndUpdate, FindOneAndReplace, FindOneAndDelete
//	mongo.Connect, options.Client   Connect, Config and ConnectConfig
//	SingleResult.Decode             FindOne returns the value
//	Cursor.Decode, Cursor.Current   Cursor.Current, Cursor.Raw
//	Collection.Clone                Collection.With
//	options.BSONOptions             Config.BSON, CollectionOptions.BSON
//	Collection.Indexes().CreateOne  Collection.CreateIndex
//	Client.Ping                     Client.WaitReady, or RunCommand with ping
//	Database.RunCommandCursor       RunCommandCursor
//
// A Client owns goroutines: one that holds the topology, one or two for each member that it watches, those of the pools,
// and a publisher of events. They start with the first operation; Close ends them and waits.
package sextant
