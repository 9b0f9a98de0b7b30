package sextant

import (
	"cmp"
	"net"
	"strconv"
	"strings"

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

// defaultProxyPort is where SOCKS proxies listen (RFC 1928).
const defaultProxyPort = 1080

// proxy is the SOCKS5 proxy that connections go through, nil for none.
func (c *Config) proxy() *conn.Proxy {
	if c.ProxyHost == "" {
		return nil
	}
	return &conn.Proxy{
		Address:  net.JoinHostPort(strings.Trim(c.ProxyHost, "[]"), strconv.Itoa(cmp.Or(c.ProxyPort, defaultProxyPort))),
		Username: c.ProxyUsername, Password: c.ProxyPassword,
	}
}
