package sextant

import (
	"github.com/sextantdb/sextant/internal/compress"
	"github.com/sextantdb/sextant/internal/conn"
)

// compression is what the client's connections offer to compress messages with, nil for nothing.
func (c *Config) compression() *conn.Compression {
	if len(c.Compressors) == 0 {
		return nil
	}
	out := &conn.Compression{Codec: compress.New(compress.DefaultLevel)}
	if c.ZlibCompressionLevel != nil {
		out.Codec = compress.New(*c.ZlibCompressionLevel)
	}
	for _, name := range c.Compressors {
		if id, ok := compress.ByName(name); ok {
			out.Offer = append(out.Offer, id)
		}
	}
	return out
}
