package mongoerr

import "fmt"

// Codes of the server that code here, in tests or in the embedded server calls by name. The whole table is behind
// CodeName. Names are those of MongoDB 8.0; match by number, for names have changed between versions.
const (
	CodeInternalError                            int32 = 1
	CodeBadValue                                 int32 = 2
	CodeNoSuchKey                                int32 = 4
	CodeHostUnreachable                          int32 = 6
	CodeHostNotFound                             int32 = 7
	CodeUnknownError                             int32 = 8
	CodeFailedToParse                            int32 = 9
	CodeUserNotFound                             int32 = 11
	CodeUnauthorized                             int32 = 13
	CodeTypeMismatch                             int32 = 14
	CodeOverflow                                 int32 = 15
	CodeInvalidLength                            int32 = 16
	CodeProtocolError                            int32 = 17
	CodeAuthenticationFailed                     int32 = 18
	CodeIllegalOperation                         int32 = 20
	CodeEmptyArrayOperation                      int32 = 21
	CodeInvalidBSON                              int32 = 22
	CodeLockTimeout                              int32 = 24
	CodeNamespaceNotFound                        int32 = 26
	CodeIndexNotFound                            int32 = 27
	CodePathNotViable                            int32 = 28
	CodeNonExistentPath                          int32 = 29
	CodeRoleNotFound                             int32 = 31
	CodeConflictingUpdateOperators               int32 = 40
	CodeCursorNotFound                           int32 = 43
	CodeNamespaceExists                          int32 = 48
	CodeMaxTimeMSExpired                         int32 = 50
	CodeDollarPrefixedFieldName                  int32 = 52
	CodeInvalidIdField                           int32 = 53
	CodeNotSingleValueField                      int32 = 54
	CodeEmptyFieldName                           int32 = 56
	CodeDottedFieldName                          int32 = 57
	CodeCommandNotFound                          int32 = 59
	CodeWriteConcernFailed                       int32 = 64
	CodeImmutableField                           int32 = 66
	CodeCannotCreateIndex                        int32 = 67
	CodeIndexAlreadyExists                       int32 = 68
	CodeInvalidOptions                           int32 = 72
	CodeInvalidNamespace                         int32 = 73
	CodeNodeNotFound                             int32 = 74
	CodeNoReplicationEnabled                     int32 = 76
	CodeUnknownReplWriteConcern                  int32 = 79
	CodeIndexOptionsConflict                     int32 = 85
	CodeIndexKeySpecsConflict                    int32 = 86
	CodeNetworkTimeout                           int32 = 89
	CodeShutdownInProgress                       int32 = 91
	CodeInvalidReplicaSetConfig                  int32 = 93
	CodeNotYetInitialized                        int32 = 94
	CodeNotSecondary                             int32 = 95
	CodeOperationFailed                          int32 = 96
	CodeUnsatisfiableWriteConcern                int32 = 100
	CodeNodeNotElectable                         int32 = 104
	CodeWriteConflict                            int32 = 112
	CodeInitialSyncFailure                       int32 = 113
	CodeCommandNotSupported                      int32 = 115
	CodeDocTooLargeForCapped                     int32 = 116
	CodeConflictingOperationInProgress           int32 = 117
	CodeInvalidSyncSource                        int32 = 119
	CodeOplogStartMissing                        int32 = 120
	CodeDocumentValidationFailure                int32 = 121
	CodeNotAReplicaSet                           int32 = 123
	CodeCommandFailed                            int32 = 125
	CodeFailedToSatisfyReadPreference            int32 = 133
	CodeReadConcernMajorityNotAvailableYet       int32 = 134
	CodeStaleTerm                                int32 = 135
	CodeCappedPositionLost                       int32 = 136
	CodeCursorInUse                              int32 = 143
	CodeExceededMemoryLimit                      int32 = 146
	CodeMaxStalenessOutOfRange                   int32 = 160
	CodeViewDepthLimitExceeded                   int32 = 165
	CodeCommandNotSupportedOnView                int32 = 166
	CodeOptionNotSupportedOnView                 int32 = 167
	CodeInvalidPipelineOperator                  int32 = 168
	CodeCannotIndexParallelArrays                int32 = 171
	CodeQueryPlanKilled                          int32 = 175
	CodeAmbiguousIndexKeyPattern                 int32 = 181
	CodeInvalidViewDefinition                    int32 = 182
	CodeClientMetadataMissingField               int32 = 183
	CodeClientMetadataCannotBeMutated            int32 = 186
	CodeLinearizableReadConcernError             int32 = 187
	CodeIncompatibleServerVersion                int32 = 188
	CodePrimarySteppedDown                       int32 = 189
	CodeInvalidIndexSpecificationOption          int32 = 197
	CodeNoSuchSession                            int32 = 206
	CodeInvalidUUID                              int32 = 207
	CodeDuplicateSession                         int32 = 213
	CodeDatabaseDropPending                      int32 = 215
	CodeElectionInProgress                       int32 = 216
	CodeIncompleteTransactionHistory             int32 = 217
	CodeIllegalOpMsgFlag                         int32 = 223
	CodeQueryFeatureNotAllowed                   int32 = 224
	CodeTransactionTooOld                        int32 = 225
	CodeMaxSubPipelineDepthExceeded              int32 = 232
	CodeRetryChangeStream                        int32 = 234
	CodeCursorKilled                             int32 = 237
	CodeNotImplemented                           int32 = 238
	CodeSnapshotTooOld                           int32 = 239
	CodeConversionFailure                        int32 = 241
	CodeCannotCreateCollection                   int32 = 242
	CodeSnapshotUnavailable                      int32 = 246
	CodeNoSuchTransaction                        int32 = 251
	CodeTransactionCommitted                     int32 = 256
	CodeTransactionTooLarge                      int32 = 257
	CodeInvalidResumeToken                       int32 = 260
	CodeTooManyLogicalSessions                   int32 = 261
	CodeExceededTimeLimit                        int32 = 262
	CodeOperationNotSupportedInTransaction       int32 = 263
	CodeFailPointSetFailed                       int32 = 266
	CodePreparedTransactionInProgress            int32 = 267
	CodeChangeStreamFatalError                   int32 = 280
	CodeChangeStreamHistoryLost                  int32 = 286
	CodeChecksumMismatch                         int32 = 288
	CodeNoQueryExecutionPlans                    int32 = 291
	CodeQueryExceededMemoryLimitNoDiskUseAllowed int32 = 292
	CodeAPIVersionError                          int32 = 322
	CodeAPIStrictError                           int32 = 323
	CodeAPIDeprecationError                      int32 = 324
	CodeMechanismUnavailable                     int32 = 334
	CodeUnsupportedOpQueryCommand                int32 = 352
	CodeCannotConvertIndexToUnique               int32 = 359
	CodeCollectionUUIDMismatch                   int32 = 361
	CodeReauthenticationRequired                 int32 = 391
	CodeIngressRequestRateLimitExceeded          int32 = 462
	CodeSocketException                          int32 = 9001
	CodeLegacyNotPrimary                         int32 = 10058
	CodeNotWritablePrimary                       int32 = 10107
	CodeBSONObjectTooLarge                       int32 = 10334
	CodeDuplicateKey                             int32 = 11000
	CodeInterruptedAtShutdown                    int32 = 11600
	CodeInterrupted                              int32 = 11601
	CodeInterruptedDueToReplStateChange          int32 = 11602
	CodeNotPrimaryNoSecondaryOk                  int32 = 13435
	CodeNotPrimaryOrSecondary                    int32 = 13436
	CodeIDLDuplicateField                        int32 = 40413
	CodeIDLFailedToParse                         int32 = 40414
	CodeIDLUnknownField                          int32 = 40415
	CodeNotARetryableWriteCommand                int32 = 50768
)

// CodeName is the server's name of a code, as a reply's codeName gives it. A code without a name of its own, which
// is one place in the server's source, is "Location" and the number, as the server writes it. Code 0 is "".
func CodeName(code int32) string {
	if code == 0 {
		return ""
	}
	if name, ok := codeNames[code]; ok {
		return name
	}
	return fmt.Sprintf("Location%d", code)
}
