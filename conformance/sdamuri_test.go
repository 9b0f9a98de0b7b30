package conformance

import (
	"fmt"
	"net/url"
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

// rawOf makes BSON of a reply as the files write it.
func rawOf(data []byte) (bson.Raw, error) {
	var d bson.D
	if err := bson.UnmarshalExtJSON(data, false, &d); err != nil {
		return nil, err
	}
	return bson.Marshal(d)
}
