package conformance

import (
	"github.com/sextantdb/sextant/bson"
	"github.com/sextantdb/sextant/internal/connstring"
	"github.com/sextantdb/sextant/internal/topology"
)

// configOf is what a client would start from.
func configOf(uri string) (topology.Config, error) {
	u, err := connstring.Parse(uri)
	if err != nil {
		return topology.Config{}, err
	}
	return topology.Config{Seeds: u.Hosts, SetName: u.ReplicaSet,
		Direct: deref(u.DirectConnection, false), LoadBalanced: deref(u.LoadBalanced, false)}, nil
}

// rawOf makes BSON of a reply as the files write it.
func rawOf(data []byte) (bson.Raw, error) {
	var d bson.D
	if err := bson.UnmarshalExtJSON(data, false, &d); err != nil {
		return nil, err
	}
	return bson.Marshal(d)
}
