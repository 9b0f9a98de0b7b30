package command

import (
	"math"
	"time"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/mongoerr"
)

// WriteConcern is the writeConcern of a command.
type WriteConcern struct {
	Given    bool
	W        int64  // members, if Mode is ""
	Mode     string // "majority" or the name of a mode
	Journal  bool   // count only members that would still have the write after a crash
	WTimeout time.Duration
}

// parseGeneric reads the arguments that any command may carry.
func (r *Request) parseGeneric() error {
	r.ReadConcern.Level = "local"
	r.TxnNumber = -1
	for key, v := range r.Body.All() {
		var err error
		switch key {
		case "$readPreference":
			err = r.parseReadPreference(v)
		case "readConcern":
			err = r.parseReadConcern(v)
		case "writeConcern":
			err = r.parseWriteConcern(v)
		case "maxTimeMS":
			err = r.parseMaxTime(v)
		case "lsid":
			err = r.parseLSID(v)
		case "txnNumber":
			err = r.parseTxnNumber(v)
		case "$clusterTime":
			if _, ok := v.DocumentOK(); !ok {
				err = mongoerr.Server(10065, "invalid parameter: expected an object ($clusterTime)")
			}
		}
		if err != nil {
			return err
		}
	}
	return r.checkSession()
}

func (r *Request) parseReadPreference(v bson.RawValue) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeTypeMismatch, `"$readPreference" had the wrong type. Expected object, found %s`, bsonName(v.Type))
	}
	mode, _ := doc.Lookup("mode").StringValueOK()
	switch mode {
	case "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest":
		r.ReadPreference = mode
		return nil
	}
	return mongoerr.Server(mongoerr.CodeFailedToParse, "Could not parse $readPreference mode '%s'. Only the modes 'primary', "+
		"'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported.", mode)
}

func (r *Request) parseReadConcern(v bson.RawValue) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "readConcern field should be an object")
	}
	for key, f := range doc.All() {
		switch key {
		case "level":
			level, _ := f.StringValueOK()
			switch level {
			case "local", "available", "majority", "linearizable", "snapshot":
				r.ReadConcern.Level = level
			default:
				return mongoerr.Server(mongoerr.CodeFailedToParse,
					"readConcern.level must be either 'local', 'majority', 'linearizable', 'available', or 'snapshot'")
			}
		case "afterClusterTime":
			t, i, ok := f.TimestampOK()
			if !ok {
				return mongoerr.Server(mongoerr.CodeTypeMismatch,
					`"afterClusterTime" had the wrong type. Expected timestamp, found %s`, bsonName(f.Type))
			}
			r.ReadConcern.AfterClusterTime = bson.Timestamp{T: t, I: i}
		case "afterOpTime":
			if _, ok := f.DocumentOK(); !ok {
				return mongoerr.Server(mongoerr.CodeTypeMismatch, `"afterOpTime" had the wrong type. Expected object, found %s`, bsonName(f.Type))
			}
		case "atClusterTime":
			t, i, ok := f.TimestampOK()
			if !ok {
				return mongoerr.Server(mongoerr.CodeTypeMismatch,
					`"atClusterTime" had the wrong type. Expected timestamp, found %s`, bsonName(f.Type))
			}
			r.ReadConcern.AtClusterTime = bson.Timestamp{T: t, I: i}
		case "provenance", "allowTransactionTableSnapshot":
		default:
			return mongoerr.Server(mongoerr.CodeInvalidOptions, "Unrecognized option in readConcern: %s", key)
		}
	}
	return nil
}

func (r *Request) parseWriteConcern(v bson.RawValue) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeTypeMismatch, `"writeConcern" had the wrong type. Expected object, found %s`, bsonName(v.Type))
	}
	w := WriteConcern{W: 1}
	for key, f := range doc.All() {
		switch key {
		case "w":
			if err := w.parseW(f); err != nil {
				return err
			}
		case "wtimeout", "wtimeoutMS":
			n, ok := f.AsInt64OK()
			if !ok || n < 0 || n > math.MaxInt32 {
				return mongoerr.Server(mongoerr.CodeFailedToParse, "wtimeout must be between 0 and %d", math.MaxInt32)
			}
			w.WTimeout = time.Duration(n) * time.Millisecond
		case "j", "fsync":
			on, _ := f.BooleanOK()
			n, _ := f.AsFloat64OK()
			w.Journal = w.Journal || on || n != 0
		case "provenance", "getLastError":
		default:
			return mongoerr.Server(mongoerr.CodeFailedToParse, "unrecognized write concern field: %s", key)
		}
		w.Given = w.Given || key == "w" || key == "j" || key == "fsync"
	}
	if !w.Given { // only a wtimeout, or nothing at all: the default w with that limit
		w.W = 0
	}
	r.WriteConcern = w
	return nil
}

func (w *WriteConcern) parseW(v bson.RawValue) error {
	if mode, ok := v.StringValueOK(); ok {
		w.Mode = mode
		return nil
	}
	n, ok := v.AsInt64OK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "w has to be a number or string; found: %s", v.Type)
	}
	const most = 50
	if n < 0 || n > most {
		return mongoerr.Server(mongoerr.CodeFailedToParse, "w cannot be negative or greater than %d; found: %d", most, n)
	}
	w.W = n
	return nil
}

func (r *Request) parseMaxTime(v bson.RawValue) error {
	n, ok := v.AsFloat64OK()
	switch {
	case !ok:
		return mongoerr.Server(mongoerr.CodeBadValue, "maxTimeMS must be a number")
	case n < 0 || n > math.MaxInt32:
		return mongoerr.Server(mongoerr.CodeBadValue, "maxTimeMS is out of range")
	case n != math.Trunc(n):
		return mongoerr.Server(mongoerr.CodeBadValue, "maxTimeMS has non-integral value")
	}
	r.MaxTimeMS = int64(n)
	return nil
}

func (r *Request) parseLSID(v bson.RawValue) error {
	doc, ok := v.DocumentOK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeTypeMismatch,
			"BSON field 'OperationSessionInfo.lsid' is the wrong type '%s', expected type 'object'", bsonName(v.Type))
	}
	if _, err := sessionID(doc, "OperationSessionInfo.lsid"); err != nil {
		return err
	}
	r.LSID = doc
	return nil
}

func (r *Request) parseTxnNumber(v bson.RawValue) error {
	n, ok := v.Int64OK()
	if !ok {
		return mongoerr.Server(mongoerr.CodeTypeMismatch,
			"BSON field 'OperationSessionInfo.txnNumber' is the wrong type '%s', expected type 'long'", bsonName(v.Type))
	}
	if n < 0 {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Transaction number cannot be negative")
	}
	r.TxnNumber = n
	return nil
}

// checkSession refuses combinations of session arguments that have no meaning here.
func (r *Request) checkSession() error {
	if r.TxnNumber >= 0 && r.LSID == nil {
		return mongoerr.Server(mongoerr.CodeInvalidOptions, "Transaction number requires a session ID to also be specified")
	}
	for _, key := range []string{"startTransaction", "autocommit"} {
		if !r.Field(key).IsZero() {
			return mongoerr.Server(mongoerr.CodeNotImplemented, "multi-document transactions are not implemented yet (field '%s')", key)
		}
	}
	return nil
}

// bsonName is the server's name of a type in messages.
func bsonName(t bson.Type) string {
	switch t {
	case bson.TypeInt32:
		return "int"
	case bson.TypeInt64:
		return "long"
	case bson.TypeEmbeddedDocument:
		return "object"
	case bson.TypeBoolean:
		return "bool"
	case bson.TypeBinary:
		return "binData"
	case bson.TypeObjectID:
		return "objectId"
	case bson.TypeDateTime:
		return "date"
	case bson.TypeDecimal128:
		return "decimal"
	}
	return t.String()
}
