package sextant

// WriteModel is one write of a BulkWrite: an InsertOneModel, UpdateOneModel, UpdateManyModel, ReplaceOneModel,
// DeleteOneModel or DeleteManyModel, or a pointer to one. No other type is.
//
// Models are not bound to the collection's type, for the reasons for which InsertOne and ReplaceOne are not: a document may
// be a T, a *T that gets its id, or any other shape of the same collection.
type WriteModel interface{ write() write }

// ours says whether m is of a type of this package, and not one that embeds a model.
func ours(m WriteModel) bool {
	switch m.(type) {
	case InsertOneModel, UpdateOneModel, UpdateManyModel, ReplaceOneModel, DeleteOneModel, DeleteManyModel,
		*InsertOneModel, *UpdateOneModel, *UpdateManyModel, *ReplaceOneModel, *DeleteOneModel, *DeleteManyModel:
		return true
	}
	return false
}

// InsertOneModel inserts a document, which gets an _id as in InsertOne: one that is generated is written back.
type InsertOneModel struct {
	Document any
}

// UpdateOneModel changes the first document that matches the filter, as UpdateOne does. Filter and Update are required; other
// zero fields are not sent.
type UpdateOneModel struct {
	Filter       any
	Update       any   // a document of operators such as {$set: {...}}, or an aggregation pipeline (4.2)
	ArrayFilters []any // which elements $[name] stands for
	Collation    *Collation
	Hint         any // an index: its name or its keys (4.2)
	Sort         any // which of several matches (8.0)
	Upsert       bool
}

// UpdateManyModel changes all documents that match the filter, as UpdateMany does. Filter and Update are required. The command
// that it is part of is never retried.
type UpdateManyModel struct {
	Filter       any
	Update       any
	ArrayFilters []any
	Collation    *Collation
	Hint         any
	Upsert       bool
}

// ReplaceOneModel puts a whole document in the place of the first one that matches the filter, as ReplaceOne does. Filter and
// Replacement are required.
type ReplaceOneModel struct {
	Filter      any
	Replacement any // must not begin with an operator
	Collation   *Collation
	Hint        any
	Sort        any
	Upsert      bool
}

// DeleteOneModel deletes the first document that matches the filter, which is required.
type DeleteOneModel struct {
	Filter    any
	Collation *Collation
	Hint      any // an index: its name or its keys (4.4)
}

// DeleteManyModel deletes all documents that match the filter, which is required; bson.D{} matches all. The command that it is
// part of is never retried.
type DeleteManyModel struct {
	Filter    any
	Collation *Collation
	Hint      any
}

// write is what all models come to: the command, and what it is told.
type write struct {
	command   string
	document  any // of an insert
	statement     // of an update; of a delete its filter, collation and hint
}

// limit is that of a delete: 1 for the first match, 0 for all.
func (w *write) limit() int32 {
	if w.multi {
		return 0
	}
	return 1
}

func (m InsertOneModel) write() write { return write{command: "insert", document: m.Document} }

func (m UpdateOneModel) write() write {
	return write{command: "update", statement: statement{filter: m.Filter, update: m.Update, o: UpdateOneOptions{
		ArrayFilters: m.ArrayFilters, Collation: m.Collation, Hint: m.Hint, Sort: m.Sort, Upsert: m.Upsert,
	}}}
}

func (m UpdateManyModel) write() write {
	return write{command: "update", statement: statement{filter: m.Filter, update: m.Update, multi: true, o: UpdateOneOptions{
		ArrayFilters: m.ArrayFilters, Collation: m.Collation, Hint: m.Hint, Upsert: m.Upsert,
	}}}
}

func (m ReplaceOneModel) write() write {
	return write{command: "update", statement: statement{filter: m.Filter, update: m.Replacement, replace: true, o: UpdateOneOptions{
		Collation: m.Collation, Hint: m.Hint, Sort: m.Sort, Upsert: m.Upsert,
	}}}
}

func (m DeleteOneModel) write() write { return deletion(m.Filter, m.Collation, m.Hint, false) }

func (m DeleteManyModel) write() write { return deletion(m.Filter, m.Collation, m.Hint, true) }

func deletion(filter any, c *Collation, hint any, many bool) write {
	return write{command: "delete", statement: statement{filter: filter, multi: many, o: UpdateOneOptions{Collation: c, Hint: hint}}}
}
