package mongoerr

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
)

// find is the Error inside err, or nil.
func find(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return nil
}

// Code is the server's code of the error: the command's, else that of the first failed write, else that of the write
// concern; 0 if there is none.
func Code(err error) int32 {
	e := find(err)
	switch {
	case e == nil:
		return 0
	case e.Code != 0:
		return e.Code
	case len(e.WriteErrors) > 0:
		return e.WriteErrors[0].Code
	case e.WriteConcernError != nil:
		return e.WriteConcernError.Code
	}
	return 0
}

// HasLabel says whether the error carries the label.
func HasLabel(err error, label string) bool {
	e := find(err)
	return e != nil && e.HasLabel(label)
}

// IsTimeout says whether a time limit ran out: the caller's context, a limit of the client, the socket's, or the
// server's maxTimeMS.
func IsTimeout(err error) bool {
	if e := find(err); e != nil && (e.Timeout() || e.HasCode(CodeMaxTimeMSExpired)) {
		return true
	}
	return isTimeoutCause(err)
}

// IsNetwork says whether the connection failed, timeouts of the network included. A cancelled context is none: the
// caller gave up, the network did not.
func IsNetwork(err error) bool {
	e := find(err)
	if e == nil {
		return isNetworkCause(err)
	}
	if e.Code != 0 || errors.Is(e.Cause, context.Canceled) || errors.Is(e.Cause, ErrPoolCleared) || errors.Is(e.Cause, ErrNoCredentials) {
		return false
	}
	switch e.Stage {
	case StageProxy, StageDial, StageTLS, StageWrite, StageRead:
		return true
	case StageHandshake, StageAuth:
		return e.TimedOut || isNetworkCause(e.Cause)
	}
	return false
}

func isNetworkCause(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// IsDuplicateKey says whether a unique index refused a write. Servers have used four codes for it.
func IsDuplicateKey(err error) bool {
	e := find(err)
	if e == nil {
		return false
	}
	return e.HasCode(CodeDuplicateKey) || e.HasCode(11001) || e.HasCode(12582) ||
		e.HasCode(16460) && strings.Contains(e.Error(), " E11000 ")
}

// state is the code and text by which a state change is told: the command's, else the write concern's. Single
// writeErrors are never looked at (SDAM, '"not writable primary" and "node is recovering"').
func state(err error) (code int32, message string, ok bool) {
	e := find(err)
	switch {
	case e == nil || e.Stage != StageServer && e.Code == 0 && e.WriteConcernError == nil:
		return 0, "", false
	case e.Code == 0 && e.WriteConcernError != nil:
		return e.WriteConcernError.Code, strings.ToLower(e.WriteConcernError.Message), true
	}
	return e.Code, strings.ToLower(e.Message), true
}

// IsNodeIsRecovering says whether the member cannot serve for now: it starts, recovers, steps down or shuts down.
// The code alone decides; the text only if there is no code.
func IsNodeIsRecovering(err error) bool {
	code, message, ok := state(err)
	if !ok {
		return false
	}
	switch code {
	case CodeInterruptedAtShutdown, CodeInterruptedDueToReplStateChange, CodeNotPrimaryOrSecondary,
		CodePrimarySteppedDown, CodeShutdownInProgress:
		return true
	case 0:
		return strings.Contains(message, "not master or secondary") || strings.Contains(message, "not primary or secondary") ||
			strings.Contains(message, "node is recovering")
	}
	return false
}

// IsNotPrimary says whether a member refused because it is not the primary.
// The code alone decides; the text only if there is no code.
func IsNotPrimary(err error) bool {
	code, message, ok := state(err)
	if !ok {
		return false
	}
	switch code {
	case CodeNotWritablePrimary, CodeNotPrimaryNoSecondaryOk, CodeLegacyNotPrimary:
		return true
	case 0:
		return (strings.Contains(message, "not master") || strings.Contains(message, "not writable primary")) && !IsNodeIsRecovering(err)
	}
	return false
}

// IsStateChange says whether the error shows that the client's view of the member is out of date.
func IsStateChange(err error) bool { return IsNotPrimary(err) || IsNodeIsRecovering(err) }

// IsShutdown says whether the member is shutting down.
func IsShutdown(err error) bool {
	code, _, ok := state(err)
	return ok && (code == CodeInterruptedAtShutdown || code == CodeShutdownInProgress)
}

// IsSelection says whether no member could serve the operation.
func IsSelection(err error) bool { return atStage(err, StageSelection) }

// IsConfig says whether the URI, the options or the arguments were wrong.
func IsConfig(err error) bool { return atStage(err, StageConfig) }

// IsAuth says whether authentication failed. A connection that broke meanwhile, or a server that was about to change its
// state, says nothing about the user.
func IsAuth(err error) bool {
	e := find(err)
	switch {
	case e == nil:
		return false
	case e.Code == CodeAuthenticationFailed:
		return true
	}
	return e.Stage == StageAuth && !IsNetwork(e) && !IsRetryableWriteCode(e.Code)
}

// IsLoginRefused says whether authentication failed for a reason that trying again at once will not cure: the user or
// the password is wrong, the mechanism is not offered, the credentials cannot be had. After another error of the server
// in the middle of a login the next one may succeed.
func IsLoginRefused(err error) bool {
	if !IsAuth(err) {
		return false
	}
	switch find(err).Code {
	case 0, CodeAuthenticationFailed, CodeBadValue, CodeCommandNotFound, CodeMechanismUnavailable:
		return true
	}
	return false
}

func atStage(err error, s Stage) bool {
	e := find(err)
	return e != nil && e.Stage == s
}

// IsPoolCleared says whether the operation found its member's pool paused after somebody else's failure.
func IsPoolCleared(err error) bool { return errors.Is(err, ErrPoolCleared) }

// IsRetryableRead says whether a read that failed so may be tried once more (retryable reads specification).
func IsRetryableRead(err error) bool {
	if IsPoolCleared(err) || IsNetwork(err) {
		return true
	}
	e := find(err)
	return e != nil && (IsRetryableWriteCode(e.Code) || e.Code == CodeReadConcernMajorityNotAvailableYet)
}

// IsRetryableWriteCode says whether a server before 4.4, which gave no labels, meant with the code that the write may
// be sent once more (retryable writes specification).
func IsRetryableWriteCode(code int32) bool {
	switch code {
	case CodeHostUnreachable, CodeHostNotFound, CodeNetworkTimeout, CodeShutdownInProgress, CodePrimarySteppedDown,
		CodeExceededTimeLimit, CodeSocketException, CodeNotWritablePrimary, CodeInterruptedAtShutdown,
		CodeInterruptedDueToReplStateChange, CodeNotPrimaryNoSecondaryOk, CodeNotPrimaryOrSecondary:
		return true
	}
	return false
}

func isTimeoutCode(code int32) bool {
	return code == CodeMaxTimeMSExpired || code == 202 || code == CodeExceededTimeLimit
}

// IsCanceled says whether the caller gave up.
func IsCanceled(err error) bool { return errors.Is(err, context.Canceled) }

// IsOverload says whether a connection failed in a way that an overloaded server causes: the network failed or a time
// limit ran out while dialling, securing or greeting. An unresolvable name, a bad certificate, a refusal
// by a TLS alert, a port without TLS and the authentication conversation are none of these. Such errors carry LabelSystemOverloaded and LabelRetryable, and neither clear the pool
// nor make the server Unknown (CMAP, "SystemOverloadedError").
func IsOverload(err error) bool {
	e := find(err)
	if e == nil || !IsNetwork(e) && !e.TimedOut {
		return false
	}
	switch e.Stage {
	case StageDial, StageTLS, StageHandshake:
	default:
		return false
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var op *net.OpError
	alert := errors.As(err, &op) && op.Op == "remote error"
	return !errors.As(err, &dns) && !errors.As(err, &cert) && !errors.As(err, &record) && !alert
}
