package command

import "github.com/sextantdb/sextant/mongoerr"

// viewsUnsupported refuses views: they need the aggregation pipeline.
func viewsUnsupported(ns string) error {
	return mongoerr.Server(mongoerr.CodeCommandNotSupported, "views are not supported: %s", ns)
}
