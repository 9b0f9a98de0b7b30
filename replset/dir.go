package replset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// folders are the members' disks as they are found at the start.
type folders struct {
	disks  []*command.Disk
	places []command.Place
	now    []string        // the addresses from now on, of those that listen
	before *command.Config // the newest configuration that the set in the data folder had, nil if it is a new set
}

func (f *folders) close() {
	for _, d := range f.disks {
		_ = d.Close(true)
	}
}

// openFolders opens the disks of all members that there are or shall be.
func (o *Options) openFolders(anyNumber bool) (*folders, error) {
	f := &folders{}
	for i := 0; i < o.Members || o.Dir != "" && o.exists(i); i++ {
		d, err := o.disk(i)
		if err != nil {
			f.close()
			return nil, err
		}
		f.disks = append(f.disks, d)
	}
	if err := o.readFolders(f, anyNumber); err != nil {
		f.close()
		return nil, err
	}
	f.now = make([]string, len(f.places))
	return f, nil
}

func (o *Options) exists(i int) bool {
	_, err := os.Stat(o.file(i))
	return err == nil
}

// readFolders finds out which members the set had, and where.
func (o *Options) readFolders(f *folders, anyNumber bool) error {
	like := o.unconfigured()
	first := 0
	for i, d := range f.disks {
		cfg, err := d.Stored(like)
		if err != nil {
			return fmt.Errorf("replset: member %d: %w", i, err)
		}
		if cfg != nil && (f.before == nil || f.before.ID().Less(cfg.ID())) {
			f.before = cfg
		}
		p := d.Place()
		first = max(first, p.Members)
		f.places = append(f.places, p)
	}
	if f.before == nil { // whatever else is in the folder is nothing that was ever started
		for _, d := range f.disks[o.Members:] {
			_ = d.Close(true)
		}
		f.disks, f.places = f.disks[:o.Members], make([]command.Place, o.Members)
		for i := range f.places {
			f.places[i] = o.place(i)
		}
		return nil
	}
	have := len(f.before.Members)
	switch {
	case f.before.SetName != o.SetName:
		return fmt.Errorf("replset: the data folder %s holds the set %s, not %s", o.Dir, f.before.SetName, o.SetName)
	case !anyNumber && o.Members != have && o.Members != first:
		return fmt.Errorf("replset: the data folder %s holds a set of %d members, not %d", o.Dir, have, o.Members)
	}
	for i := range f.places {
		f.places[i] = o.placeNow(f.places[i], i, f.before)
	}
	return nil
}

// place is where the options want member i.
func (o *Options) place(i int) command.Place {
	m := o.member(i)
	return command.Place{Name: strings.ToLower(m.Name), Port: m.Port, Members: o.Members}
}

// placeNow is where a member is to be that has been before: where the options want it, and where they leave that open, or
// do not know of it, where it was.
func (o *Options) placeNow(was command.Place, i int, before *command.Config) command.Place {
	if was == (command.Place{}) { // a file from before places were kept
		was = command.Place{Members: len(before.Members)}
		if m := before.Member(i); m != nil {
			was.Host = m.Host
		}
	}
	if i < was.Members {
		want := o.place(i)
		was.Name, was.Port = want.Name, want.Port
	}
	return was
}

// resume is the configuration to start with: that of the options, unless the set has been reconfigured since; at
// today's addresses. It is in every member's file before a member starts.
func (o *Options) resume(f *folders) (cfg *command.Config, err error) {
	if f.before != nil && (f.before.Version > 1 || len(f.before.Members) != o.Members) {
		cfg = f.before
		cfg.ElectionTimeout, cfg.HeartbeatInterval, cfg.CatchUpTimeout = o.ElectionTimeout, o.HeartbeatInterval, o.CatchUpTimeout
	} else {
		if cfg, err = o.config(f.now); err != nil {
			return nil, err
		}
		if f.before != nil {
			cfg.Term = f.before.Term
		}
	}
	moved := make([]*command.MemberConfig, len(f.places)) // all are found before any moves: one may get the port that another had
	for i := range f.places {
		moved[i] = cfg.At(f.places[i].Host)
	}
	for i, host := range f.now {
		if host == "" {
			continue
		}
		if f.places[i].Host = host; cfg == f.before {
			moved[i].Host = host
		}
	}
	for i, d := range f.disks {
		if f.now[i] == "" {
			continue
		}
		if err := errors.Join(d.SaveConfig(cfg), d.SavePlace(f.places[i])); err != nil {
			return nil, fmt.Errorf("replset: member %d: %w", i, err)
		}
	}
	return cfg, nil
}

// listenAt listens for member i. Where the port is left open, it is the one that the member had before, if that is free:
// the set's URI stays the same.
func (s *Set) listenAt(ctx context.Context, host string, p command.Place, i int) (net.Listener, error) {
	if p.Port == 0 && p.Host != "" {
		_, had, _ := net.SplitHostPort(p.Host)
		l, err := s.opt.Network.Listen(ctx, net.JoinHostPort(host, had))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		s.opt.Logger.Info("the port that the member had is taken: it gets another", "member", i, "port", had)
	}
	return s.opt.Network.Listen(ctx, net.JoinHostPort(host, strconv.Itoa(p.Port)))
}
