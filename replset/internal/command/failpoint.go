package command

import (
	"context"
	"sync"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

var failPointCommands = []Spec{
	{Name: "configureFailPoint", Flags: AdminOnly, Handler: configureFailPoint},
}

// FailCommand says which commands fail, how, and how often. It is the fail point failCommand of a server with
// enableTestCommands, typed.
type FailCommand struct {
	Commands []string // names as sent: hello does not match isMaster
	// How often: Times matching commands (0: all); the first Skip of them pass.
	Times, Skip int

	ErrorCode         int32         // answer this instead of running the command; 0: run it
	ErrorLabels       []string      // the reply's labels in place of the server's own; empty and not nil: none
	CloseConnection   bool          // close instead of running the command
	Block             time.Duration // wait before everything else
	WriteConcernError bson.Raw      // run the command and put this in the reply
	AppName           string        // only this client's commands; "": all
	Namespace         string        // only commands on this "db.coll"; "": all
	Internal          bool          // the other members' commands too
}

// failPoints are the member's fail points. Those that are known and not implemented are refused when switched on.
type failPoints struct {
	mu      sync.Mutex // guards all below
	command *FailCommand
	left    int // how many more commands fail; -1: all
	skip    int // how many more pass first
	entered int64
	others  map[string]*failPoint
}

// SetFailCommand switches the fail point failCommand on, or off with nil.
func (m *Member) SetFailCommand(f *FailCommand) {
	p := &m.failPoints
	p.mu.Lock()
	defer p.mu.Unlock()
	p.command = f
	if f == nil {
		return
	}
	p.left, p.skip = -1, f.Skip
	if f.Times > 0 {
		p.left = f.Times
	}
}

// match returns the fail point if the request is one that fails now.
func (p *failPoints) match(r *Request) *FailCommand {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.command
	if f == nil || !f.matches(r) {
		return nil
	}
	if p.skip > 0 {
		p.skip--
		return nil
	}
	if p.left == 0 {
		return nil
	}
	if p.left > 0 {
		p.left--
	}
	p.entered++
	return f
}

func (f *FailCommand) matches(r *Request) bool {
	if r.Name == "configureFailPoint" || r.Conn.internal && !f.Internal || f.AppName != "" && f.AppName != r.Conn.App {
		return false
	}
	if f.Namespace != "" {
		coll, _ := r.Field(r.Name).StringValueOK()
		if f.Namespace != r.DB+"."+coll {
			return false
		}
	}
	for _, name := range f.Commands {
		if name == r.Name {
			return true
		}
	}
	return false
}

// before does what comes before the command runs, and reports whether it is not to run at all.
func (f *FailCommand) before(r *Request) (stop bool, rep reply) {
	if f.Block > 0 && !pause(r.ctx, time.Now().Add(f.Block)) {
		return true, refuse(serverError(r.ctx, context.Cause(r.ctx)))
	}
	if f.CloseConnection {
		return true, reply{drop: true}
	}
	if f.ErrorCode == 0 {
		return false, reply{}
	}
	rep = refuse(mongoerr.Server(f.ErrorCode, "Failing command via 'failCommand' failpoint"))
	rep.staged = true
	f.label(&rep)
	return true, rep
}

// after changes the reply of a command that ran.
func (f *FailCommand) after(rep *reply) {
	if f.WriteConcernError == nil {
		return
	}
	rep.forced = f.WriteConcernError
	rep.wce = nil
	f.label(rep)
}

func (f *FailCommand) label(rep *reply) {
	if f.ErrorLabels != nil {
		rep.own, rep.labels = true, f.ErrorLabels
	}
}

func configureFailPoint(_ context.Context, m *Member, r *Request) (bson.D, error) {
	name, _ := r.Field("configureFailPoint").StringValueOK()
	switch name {
	case "failCommand":
	case "rsSyncApplyStop", "stopReplProducer":
		return lagPoint(m, name, r)
	case getMorePoint, writePoint:
		return m.failPoints.configure(name, r)
	default:
		return nil, mongoerr.Server(mongoerr.CodeFailPointSetFailed, "%s not found", name)
	}
	m.failPoints.mu.Lock()
	entered := m.failPoints.entered
	m.failPoints.mu.Unlock()
	mode := r.Field("mode")
	if mode.IsZero() {
		return nil, mongoerr.Server(mongoerr.CodeIllegalOperation, "When setting a failpoint, you must supply a 'mode'")
	}
	f := &FailCommand{}
	off, err := f.parseMode(mode)
	if err != nil {
		return nil, err
	}
	if off {
		m.SetFailCommand(nil)
		return bson.D{{Key: "count", Value: entered}}, nil
	}
	data, _ := r.Field("data").DocumentOK()
	if err := f.parseData(data); err != nil {
		return nil, err
	}
	m.SetFailCommand(f)
	return bson.D{{Key: "count", Value: entered}}, nil
}

// lagPoint has the member apply nothing of what it pulls, or go on. Of the two names that a server has for this, neither
// stops the pulling itself here; and unlike a server's, it outlives a Kill.
func lagPoint(m *Member, name string, r *Request) (bson.D, error) {
	mode, _ := r.Field("mode").StringValueOK()
	if mode != "alwaysOn" && mode != "off" {
		return nil, mongoerr.Server(mongoerr.CodeBadValue, "the fail point %s takes the modes 'alwaysOn' and 'off'", name)
	}
	m.opt.Faults.Lag(mode == "alwaysOn")
	return bson.D{{Key: "count", Value: int32(0)}}, nil
}

func (f *FailCommand) parseMode(mode bson.RawValue) (off bool, err error) {
	if word, ok := mode.StringValueOK(); ok {
		switch word {
		case "off":
			return true, nil
		case "alwaysOn":
			return false, nil
		}
		return false, mongoerr.Server(mongoerr.CodeBadValue, "unknown mode: %s", word)
	}
	doc, ok := mode.DocumentOK()
	if !ok {
		return false, mongoerr.Server(mongoerr.CodeTypeMismatch, "'mode' must be a string or JSON object")
	}
	for key, v := range doc.All() {
		n, isNumber := v.AsInt64OK()
		if !isNumber || n < 0 || n > 1<<31-1 {
			return false, mongoerr.Server(mongoerr.CodeTypeMismatch, "the mode '%s' needs a non-negative number", key)
		}
		switch key {
		case "times": // 0 is taken for always, as the server does
			f.Times = int(n)
		case "skip":
			f.Skip = int(n)
		default:
			return false, mongoerr.Server(mongoerr.CodeBadValue, "'mode' must be one of 'off', 'alwaysOn', {times: n}, {skip: n}; found '%s'", key)
		}
	}
	return false, nil
}

func (f *FailCommand) parseData(data bson.Raw) error {
	var blockMS int64
	block := false
	for key, v := range data.All() {
		ok := true
		switch key {
		case "failCommands":
			f.Commands, ok = stringList(v)
		case "errorCode":
			var n int64
			n, ok = v.AsInt64OK()
			f.ErrorCode = int32(n)
			ok = ok && n > 0
		case "errorLabels":
			f.ErrorLabels, ok = stringList(v)
		case "closeConnection":
			f.CloseConnection, ok = v.BooleanOK()
		case "blockConnection":
			block, ok = v.BooleanOK()
		case "blockTimeMS":
			blockMS, ok = v.AsInt64OK()
			ok = ok && blockMS >= 0
		case "writeConcernError":
			var d bson.Raw
			d, ok = v.DocumentOK()
			f.WriteConcernError = d.Clone()
		case "appName":
			f.AppName, ok = v.StringValueOK()
		case "namespace":
			f.Namespace, ok = v.StringValueOK()
		case "failInternalCommands":
			f.Internal, ok = v.BooleanOK()
		case "threadName", "multitenancy", "failAllCommands", "appNameExact":
			return mongoerr.Server(mongoerr.CodeNotImplemented, "failCommand's data field '%s' is not implemented", key)
		default:
			return mongoerr.Server(mongoerr.CodeBadValue, "failCommand does not know the data field '%s'", key)
		}
		if !ok {
			return mongoerr.Server(mongoerr.CodeTypeMismatch, "failCommand's data field '%s' has an ill value of type %s", key, bsonName(v.Type))
		}
	}
	if block {
		f.Block = time.Duration(blockMS) * time.Millisecond
	}
	return nil
}

// stringList reads an array of strings; it is never nil when ok.
func stringList(v bson.RawValue) ([]string, bool) {
	arr, ok := v.ArrayOK()
	if !ok {
		return nil, false
	}
	list := []string{}
	for _, e := range arr.All() {
		s, ok := e.StringValueOK()
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}
