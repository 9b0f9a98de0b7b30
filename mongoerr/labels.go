package mongoerr

// Error labels: words by which servers and drivers tell each other what may be done about an error.
const (
	// LabelRetryableWrite: the write may be sent once more (retryable writes specification).
	LabelRetryableWrite = "RetryableWriteError"
	// LabelTransientTransaction: the whole transaction may be run again.
	LabelTransientTransaction = "TransientTransactionError"
	// LabelUnknownCommit: the commit may or may not have happened; committing again is safe.
	LabelUnknownCommit = "UnknownTransactionCommitResult"
	// LabelNoWritesPerformed: this attempt surely wrote nothing.
	LabelNoWritesPerformed = "NoWritesPerformed"
	// LabelSystemOverloaded: the server, or the way to it, is overloaded; wait before trying again.
	LabelSystemOverloaded = "SystemOverloadedError"
	// LabelRetryable: the command may be tried again, whatever it is.
	LabelRetryable = "RetryableError"
	// LabelResumableChangeStream: the change stream can go on with a new cursor.
	LabelResumableChangeStream = "ResumableChangeStreamError"
)
