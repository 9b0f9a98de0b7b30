package replset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// newDisk is the disk of a member that is new. There may be a file of one that was to be a member and never was.
func (o *Options) newDisk(i int) (*command.Disk, error) {
	d, err := o.disk(i)
	if err == nil && !d.Blank() {
		return nil, errors.Join(fmt.Errorf("replset: member %d: %s holds the data of no member of this set: move it away", i, o.file(i)), d.Close(true))
	}
	return d, err
}

// dropDisk takes away the file of a member that never was one.
func (o *Options) dropDisk(i int, d *command.Disk) error {
	blank := d.Blank()
	err := d.Close(true)
	if o.Dir == "" || !blank {
		return err
	}
	if err := os.Remove(o.file(i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(o.file(i))) // unless there is something else in it
	return err
}

// folders are the members' disks as they are found at the start.
type folders struct {
	disks  []*command.Disk
	places []command.Place
	now    []string        // the addresses from now on, of those that listen
	before *command.Config // the newest configuration that the set in the data folder had, nil if it is a new set
}

func (f *folders) close() { f.keep(0) }

// keep closes all but the first n disks.
func (f *folders) keep(n int) {
	for ; len(f.disks) > n; f.disks = f.disks[:len(f.disks)-1] {
		if d := f.disks[len(f.disks)-1]; d != nil {
			_ = d.Close(true)
		}
	}
	for len(f.disks) < n {
		f.disks = append(f.disks, nil)
	}
}

// openFolders opens the disks of all members that there are or shall be. What is refused is refused before a file is made.
func (o *Options) openFolders(anyNumber bool) (*folders, error) {
	f := &folders{}
	err := o.openExisting(f)
	if err == nil {
		err = o.readFolders(f, anyNumber)
	}
	for i := 0; err == nil && i < len(f.disks); i++ {
		if f.disks[i] == nil {
			f.disks[i], err = o.disk(i)
		}
	}
	if err != nil {
		f.close()
		return nil, err
	}
	f.now = make([]string, len(f.places))
	return f, nil
}

// openExisting opens the files that there are.
func (o *Options) openExisting(f *folders) error {
	if o.Dir == "" {
		return nil
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replset: the data folder: %w", err)
	}
	for _, e := range entries {
		const most = 1000 // members in a set's life
		number, ours := strings.CutPrefix(e.Name(), "member")
		i, err := strconv.Atoi(number)
		if !ours || err != nil || i < 0 || i >= most || strconv.Itoa(i) != number {
			continue
		}
		if _, err := os.Stat(o.file(i)); err != nil {
			continue
		}
		f.keep(max(len(f.disks), i+1))
		if f.disks[i], err = o.disk(i); err != nil {
			return err
		}
	}
	return nil
}

// readFolders finds out which members the set had, and where. It leaves disks for those that there are or shall be, nil
// where there is no file.
func (o *Options) readFolders(f *folders, anyNumber bool) error {
	member := make([]bool, len(f.disks)) // has been one, at any time
	first := 0
	for i, d := range f.disks {
		if d == nil {
			continue
		}
		cfg, err := d.Stored(o.unconfigured())
		if err != nil {
			return fmt.Errorf("replset: member %d: %w", i, err)
		}
		if cfg != nil && (f.before == nil || f.before.ID().Less(cfg.ID())) {
			f.before = cfg
		}
		member[i] = !d.Blank()
		first = max(first, d.Place().Members)
	}
	if f.before == nil { // whatever is in the folder is nothing that was ever started
		f.keep(o.Members)
		for i := range f.disks {
			f.places = append(f.places, o.place(i))
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
	f.settle(member, first)
	for i := range f.places {
		if i < f.places[i].Members {
			want := o.place(i)
			f.places[i].Name, f.places[i].Port = want.Name, want.Port
		}
	}
	return nil
}

// settle says who is at which address, so that nobody shares one, and drops the folders behind the last of those that ever
// were members: a set that was to have more members, or a process that ended in the middle of AddMember, has left them.
func (f *folders) settle(member []bool, first int) {
	n := first
	for i := range f.disks {
		if p := f.placeOf(i, first); member[i] || f.before.At(p.Host) != nil {
			n = max(n, i+1)
		}
	}
	f.places = make([]command.Place, max(n, len(f.disks)))
	owned := map[string]bool{}
	claim := func(i int) {
		p := f.placeOf(i, first)
		if owned[p.Host] {
			p.Host = ""
		}
		f.places[i], owned[p.Host] = p, true
	}
	for i := len(f.places) - 1; i >= 0; i-- { // who has data comes before who has none, and of these the newest
		if i < len(member) && member[i] {
			claim(i)
		}
	}
	for i := range f.places {
		if i >= len(member) || !member[i] {
			claim(i)
		}
	}
	for n > first && !(n <= len(member) && member[n-1]) && f.before.At(f.places[n-1].Host) == nil {
		n--
	}
	f.places = f.places[:n]
	f.keep(n)
}

// placeOf is where member i was last. Of one that has lost its file, or has one from before places were kept, the
// configuration tells.
func (f *folders) placeOf(i, first int) (p command.Place) {
	if i < len(f.disks) && f.disks[i] != nil {
		p = f.disks[i].Place()
	}
	if p == (command.Place{}) {
		p.Members = cmp.Or(first, len(f.before.Members))
		if m := f.before.Member(i); m != nil {
			p.Host = m.Host
		}
	}
	return p
}

// place is where the options want member i.
func (o *Options) place(i int) command.Place {
	m := o.member(i)
	return command.Place{Name: strings.ToLower(m.Name), Port: m.Port, Members: o.Members}
}

// resume is the configuration to start with: that of the options, unless the set has been reconfigured since; at
// today's addresses. It is in every member's file before a member starts.
func (o *Options) resume(f *folders) (cfg *command.Config, err error) {
	if f.before == nil || f.unchanged(o.Members) {
		if cfg, err = o.config(f.now[:o.Members]); err != nil {
			return nil, err
		}
		if f.before != nil {
			cfg.Term = f.before.Term
		}
	} else {
		cfg = f.before
		cfg.ElectionTimeout, cfg.HeartbeatInterval, cfg.CatchUpTimeout = o.ElectionTimeout, o.HeartbeatInterval, o.CatchUpTimeout
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
		for j := range f.places {
			if f.now[j] == "" && f.places[j].Host == host { // of one that was removed
				f.places[j].Host = ""
			}
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

// unchanged says whether the set in the folder is the one that the options made, and these may make it anew.
func (f *folders) unchanged(members int) bool {
	if f.before.Version > 1 || len(f.before.Members) != members || len(f.now) < members {
		return false
	}
	for _, host := range f.now[:members] {
		if host == "" {
			return false
		}
	}
	return true
}

// listenAt listens for member i. Where the port is left open, it is the one that the member had before, if that is free:
// the set's URI stays the same. Else it is none that another member has, be it one that does not run: an address is how
// members know each other.
func (s *Set) listenAt(ctx context.Context, host string, p command.Place, i int, others []string) (net.Listener, error) {
	if p.Port == 0 && p.Host != "" {
		_, had, _ := net.SplitHostPort(p.Host)
		l, err := s.opt.Network.Listen(ctx, net.JoinHostPort(host, had))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		s.opt.Logger.Info("the port that the member had is taken: it gets another", "member", i, "port", had)
	}
	var held []net.Listener
	defer func() { closeAll(held) }()
	for {
		l, err := s.opt.Network.Listen(ctx, net.JoinHostPort(host, strconv.Itoa(p.Port)))
		if err != nil || p.Port != 0 || !sharePort(l.Addr().String(), others) {
			return l, err
		}
		held = append(held, l)
	}
}

// sharePort says whether an address has the port of one of others.
func sharePort(addr string, others []string) bool {
	_, port, _ := net.SplitHostPort(addr)
	for _, o := range others {
		if _, p, err := net.SplitHostPort(o); err == nil && p == port {
			return true
		}
	}
	return false
}
