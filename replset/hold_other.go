//go:build !linux

package replset

import (
	"errors"
	"io"
)

// holdPort holds nothing: elsewhere two sockets cannot share a port so. A dead member's port may be lent to another.
func holdPort(string) (io.Closer, error) { return nil, errors.ErrUnsupported }
