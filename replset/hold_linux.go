package replset

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// holdPort keeps the port of a member that is dead from being lent to others: to them it is taken, those who dial it are
// refused, as by any host where nothing listens, and the member can listen again while it is held. It is a socket that is
// bound and does not listen.
func holdPort(addr string) (io.Closer, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, err
	}
	family, bind := place(at)
	if bind == nil {
		return nil, errors.New("no IP address")
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	held := os.NewFile(uintptr(fd), addr)
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // as net.Listen has it: two that share
	if err == nil {
		err = syscall.Bind(fd, bind)
	}
	if err != nil {
		_ = held.Close()
		return nil, os.NewSyscallError("bind", err)
	}
	return held, nil
}

func place(at *net.TCPAddr) (family int, bind syscall.Sockaddr) {
	if ip := at.IP.To4(); ip != nil {
		return syscall.AF_INET, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(ip)}
	}
	if ip := at.IP.To16(); ip != nil && at.Zone == "" {
		return syscall.AF_INET6, &syscall.SockaddrInet6{Port: at.Port, Addr: [16]byte(ip)}
	}
	return 0, nil
}
