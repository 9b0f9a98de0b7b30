package replset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/sextantdb/sextant/replset/internal/command"
)

// file is where member i keeps its data; "" means in memory.
func (o *Options) file(i int) string {
	if o.Dir == "" {
		return ""
	}
	return filepath.Join(o.Dir, fmt.Sprintf("member%d", i), "data.bolt")
}

// disk opens the disk of member i.
func (o *Options) disk(i int) (*command.Disk, error) {
	if o.Dir == "" {
		return command.NewDiskSized(o.OplogEntries), nil
	}
	d, err := command.OpenDisk(o.file(i), o.OplogEntries)
	if err != nil {
		return nil, fmt.Errorf("replset: member %d: %w", i, err)
	}
	return d, nil
}

// disks opens the disks of all members.
func (o *Options) disks() ([]*command.Disk, error) {
	var disks []*command.Disk
	for i := range o.Members {
		d, err := o.disk(i)
		if err != nil {
			closeDisks(disks)
			return nil, err
		}
		disks = append(disks, d)
	}
	return disks, nil
}

func closeDisks(disks []*command.Disk) {
	for _, d := range disks {
		_ = d.Close(true)
	}
}

// before is the newest configuration that the set in the data folder had, or nil if it is a new set.
func (o *Options) before(disks []*command.Disk) (*command.Config, error) {
	like := &command.Config{SetName: o.SetName, ElectionTimeout: o.ElectionTimeout, HeartbeatInterval: o.HeartbeatInterval,
		CatchUpTimeout: o.CatchUpTimeout, Modes: o.WriteModes}
	var newest *command.Config
	for i, d := range disks {
		cfg, err := d.Stored(like)
		if err != nil {
			return nil, fmt.Errorf("replset: member %d: %w", i, err)
		}
		if cfg != nil && (newest == nil || cfg.Version > newest.Version) {
			newest = cfg
		}
	}
	switch {
	case newest == nil:
		return nil, nil
	case newest.SetName != o.SetName:
		return nil, fmt.Errorf("replset: the data folder %s holds the set %s, not %s", o.Dir, newest.SetName, o.SetName)
	case len(newest.Members) != o.Members:
		return nil, fmt.Errorf("replset: the data folder %s holds a set of %d members, not %d", o.Dir, len(newest.Members), o.Members)
	}
	return newest, nil
}

// resume is the configuration to start with: that of the options, unless the set has been reconfigured since; at
// today's addresses. It is in every member's file before a member starts.
func (o *Options) resume(before *command.Config, hosts []string, disks []*command.Disk) (*command.Config, error) {
	cfg, err := o.config(hosts)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Version > cfg.Version {
		cfg = before
		for i, host := range hosts {
			cfg.Members[i].Host = host
		}
	}
	for i, d := range disks {
		if err := d.SaveConfig(cfg); err != nil {
			return nil, fmt.Errorf("replset: member %d: %w", i, err)
		}
	}
	return cfg, nil
}

// listenAt listens for member i. Where the options leave the port open, it is the one that the member had before, if
// that is free: the set's URI stays the same.
func (s *Set) listenAt(ctx context.Context, host string, port int, before *command.Config, i int) (net.Listener, error) {
	if port == 0 && before != nil {
		_, had, _ := net.SplitHostPort(before.Members[i].Host)
		l, err := s.opt.Network.Listen(ctx, net.JoinHostPort(host, had))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		s.opt.Logger.Info("the port that the member had is taken: it gets another", "member", i, "port", had)
	}
	return s.opt.Network.Listen(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
}
