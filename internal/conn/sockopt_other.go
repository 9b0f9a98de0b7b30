//go:build !linux

package conn

import "syscall"

func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
