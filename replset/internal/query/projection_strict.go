package query

import (
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/replset/internal/query/value"
)

// strictChecker holds a find's projection to the rules that there are since MongoDB 4.4: no path may stand above another, nothing
// is included and excluded at once, and the positional operator stands alone.
type strictChecker struct {
	paths      [][]string
	mode       string // "inclusion" or "exclusion" once it is known
	positional bool
	elemMatch  bool
}

func checkStrictly(p bson.Raw) error {
	c := &strictChecker{}
	for path, v := range p.All() {
		if err := c.entry(path, v); err != nil {
			return err
		}
	}
	return nil
}

func (c *strictChecker) entry(path string, v bson.RawValue) error {
	base, positional := strings.CutSuffix(path, ".$")
	parts := strings.Split(base, ".")
	for _, part := range parts {
		if strings.HasPrefix(part, "$") && !isReferencePart(part) {
			return fail(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.")
		}
	}
	first, _ := value.First(value.Doc(v))
	if v.Type == bson.TypeEmbeddedDocument && first != "" && !strings.HasPrefix(first, "$") && !positional {
		for k, e := range value.Doc(v).All() {
			if err := c.entry(base+"."+k, e); err != nil {
				return err
			}
		}
		return nil
	}
	if err := c.collide(base, parts); err != nil {
		return err
	}
	plain := v.Type == bson.TypeBoolean || value.IsNumber(v)
	if positional {
		if err := c.position(v, plain); err != nil {
			return err
		}
	}
	if first == "$elemMatch" {
		if c.positional {
			return fail(31255, "Cannot specify positional operator and $elemMatch.")
		}
		c.elemMatch = true
	}
	if !plain || base == "_id" {
		return nil // what is computed stands in either kind's way, and is looked at with the rest
	}
	return c.mix(base, value.Truthy(v))
}

// collide refuses a path that another one is, leads to or comes from.
func (c *strictChecker) collide(path string, parts []string) error {
	for _, other := range c.paths {
		if !onPath(parts, other) {
			continue
		}
		if len(parts) > len(other) {
			return fail(31249, "Path collision at %s remaining portion %s", path, strings.Join(parts[len(other):], "."))
		}
		return fail(31250, "Path collision at %s", path)
	}
	c.paths = append(c.paths, parts)
	return nil
}

func (c *strictChecker) position(v bson.RawValue, plain bool) error {
	switch {
	case c.positional:
		return fail(31276, "Cannot specify more than one positional projection per query.")
	case c.elemMatch:
		return fail(31256, "Cannot specify positional operator and $elemMatch.")
	case !plain:
		return fail(31308, "positional projection cannot be used with a literal")
	case !value.Truthy(v):
		return fail(31395, "positional projection cannot be used with exclusion")
	}
	c.positional = true
	return nil
}

func (c *strictChecker) mix(path string, on bool) error {
	mode := "exclusion"
	if on {
		mode = "inclusion"
	}
	switch {
	case c.mode == "":
		c.mode = mode
	case c.mode == mode:
	case on:
		return fail(31253, "Cannot do inclusion on field %s in exclusion projection", path)
	default:
		return fail(31254, "Cannot do exclusion on field %s in inclusion projection", path)
	}
	return nil
}
