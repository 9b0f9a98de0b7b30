package bson

import "strconv"

// Lookup returns the value at the path of keys, and whether there is one. It goes into D, M, map[string]any and, by the
// text of the index, A.
func (d D) Lookup(keys ...string) (any, bool) {
	var v any = d
	for _, key := range keys {
		var ok bool
		if v, ok = step(v, key); !ok {
			return nil, false
		}
	}
	return v, len(keys) > 0
}

func step(v any, key string) (any, bool) {
	switch x := v.(type) {
	case D:
		return x.Get(key)
	case M:
		y, ok := x[key]
		return y, ok
	case map[string]any:
		y, ok := x[key]
		return y, ok
	case A:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(x) && strconv.Itoa(i) == key {
			return x[i], true
		}
	}
	return nil, false
}

// Set gives the first element with the key another value, or appends an element.
func (d *D) Set(key string, value any) {
	for i := range *d {
		if (*d)[i].Key == key {
			(*d)[i].Value = value
			return
		}
	}
	*d = append(*d, E{key, value})
}
