package replset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/command"
)

// RolledBack is a change that a member had made and has taken back, since no majority ever had it.
type RolledBack struct {
	Namespace string         // "db.collection"; of a command, such as one that made a collection, "db.$cmd"
	ID        bson.RawValue  // the document's _id; none for a command
	Document  bson.Raw       // as it was before it was taken back; nil when the change that was lost is a deletion
	TS        bson.Timestamp // of the newest oplog entry about it
	Term      int64          // in which that was written
}

// RolledBack are the changes that member i has taken back since the set was started, the oldest first: one for each
// document and rollback. With Options.Dir the documents are also in files, Dir/rollback/<namespace>/member<i>.<time>.bson,
// one BSON document after the other; there they stay. The namespace is escaped there as in a URL, and where that is longer
// than 200 bytes cut short, with a hash of the whole behind it. A member that cannot write them ends (DOWN) and keeps its
// data; Kill and Restart have it try again. It is nil for a member that does not exist.
func (s *Set) RolledBack(i int) []RolledBack {
	m, err := s.at(i)
	if err != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]RolledBack(nil), m.aside...)
}

// keepAside keeps what the member is about to take back.
func (m *Member) keepAside(lost []command.Lost) error {
	if err := m.writeAside(lost); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range lost {
		m.aside = append(m.aside, RolledBack{Namespace: l.NS, ID: l.ID, Document: l.Doc, TS: l.OpTime.TS, Term: l.OpTime.Term})
	}
	return nil
}

// writeAside writes the documents into files by namespace, synced.
func (m *Member) writeAside(lost []command.Lost) error {
	if m.set.opt.Dir == "" {
		return nil
	}
	byNS := map[string][]byte{}
	for _, l := range lost {
		if l.Doc != nil {
			byNS[l.NS] = append(byNS[l.NS], l.Doc...)
		}
	}
	name := fmt.Sprintf("member%d.%s", m.index, time.Now().UTC().Format("2006-01-02T15-04-05.000000000"))
	for ns, docs := range byNS {
		dir := filepath.Join(m.set.opt.Dir, "rollback", folderOf(ns))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		f, err := createNew(filepath.Join(dir, name), ".bson")
		if err != nil {
			return err
		}
		_, err = f.Write(docs)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// folderOf is a name for the folder of a namespace that every file system takes: most end at 255 bytes.
func folderOf(ns string) string {
	const longest = 200
	name := url.PathEscape(ns)
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(ns))
	cut := name[:longest]
	if i := strings.LastIndexByte(cut, '%'); i > longest-3 { // no half of an escape
		cut = cut[:i]
	}
	return fmt.Sprintf("%s-%x", cut, sum[:8])
}

// createNew makes a file that was not there. Where two namespaces have one folder, as where case does not count, the name
// may be taken.
func createNew(path, ext string) (*os.File, error) {
	for n, suffix := 1, ext; ; n, suffix = n+1, fmt.Sprintf(".%d%s", n, ext) {
		f, err := os.OpenFile(path+suffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
