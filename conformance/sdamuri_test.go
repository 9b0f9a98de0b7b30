package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/topology"
)

// configOf reads the few options that the URIs of these cases have.
func configOf(uri string) (topology.Config, error) {
	var cfg topology.Config
	u, err := url.Parse("mongodb://ignored/" + strings.TrimPrefix(uri[strings.Index(uri, "://")+3:], "/"))
	if err != nil {
		return cfg, err
	}
	hosts, _, _ := strings.Cut(strings.TrimPrefix(uri, "mongodb://"), "/")
	for _, h := range strings.Split(hosts, ",") {
		if i := strings.LastIndexByte(h, ':'); i < 0 || strings.HasSuffix(h, "]") {
			h += ":27017"
		}
		cfg.Seeds = append(cfg.Seeds, h)
	}
	for key, values := range u.Query() {
		switch key {
		case "replicaSet":
			cfg.SetName = values[0]
		case "directConnection":
			cfg.Direct = values[0] == "true"
		case "loadBalanced":
			cfg.LoadBalanced = values[0] == "true"
		default:
			return cfg, fmt.Errorf("option %s of %s is not known here", key, uri)
		}
	}
	return cfg, nil
}

// rawOf makes BSON of a reply as the files write it: JSON, with $oid and $numberLong.
func rawOf(data []byte) (bson.Raw, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := decodeValue(dec)
	if err != nil {
		return nil, err
	}
	d, ok := v.(bson.D)
	if !ok {
		return nil, fmt.Errorf("%s is no document", data)
	}
	return bson.Marshal(d)
}

func decodeValue(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return decodeArray(dec)
		}
		return decodeDocument(dec)
	}
	return token, nil
}

func decodeArray(dec *json.Decoder) (any, error) {
	out := bson.A{}
	for dec.More() {
		v, err := decodeValue(dec)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := dec.Token()
	return out, err
}

func decodeDocument(dec *json.Decoder) (any, error) {
	out := bson.D{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeValue(dec)
		if err != nil {
			return nil, err
		}
		out = append(out, bson.E{Key: key.(string), Value: v})
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if len(out) == 1 {
		s, _ := out[0].Value.(string)
		switch out[0].Key {
		case "$oid":
			return bson.ObjectIDFromHex(s)
		case "$numberLong":
			return strconv.ParseInt(s, 10, 64)
		}
	}
	return out, nil
}
