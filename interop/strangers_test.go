package interop

import (
	"io"
	"slices"
	"testing"

	"github.com/sextantdb/sextant/interop/gov1"
	"github.com/sextantdb/sextant/interop/gov2"
)

// strangers are all clients that play the scenario.
var strangers = []stranger{
	// Disconnect may wait for the heartbeat under way, which the option makes short.
	{name: "gov2", start: inProcess(gov2.Serve), options: "&heartbeatFrequencyMS=1000"},
	{name: "gov1", start: inProcess(gov1.Serve), options: "&heartbeatFrequencyMS=1000"},
	// PyMongo 3.11.0 loses the label RetryableWriteError of a reply whose write was done and not confirmed.
	{name: "pymongo", start: startPython, leaks: []string{"WriteConcernError: "}},
	// When a primary is killed, the Node driver 7.9.0 repeats a write only if neither its monitor has noticed first (it then
	// has forgotten that the member takes retryable writes) nor the socket has to drain, as over TLS it always has (its error
	// is then handed on as it is).
	{name: "node", start: startNode, leaks: nodeLeaks},
	// Debian builds the extension without ICU. By default it looks for a primary once and gives up.
	{name: "php", start: startPHP, options: "&serverSelectionTryOnce=false", ascii: true},
	{name: "mongosh", start: startMongosh, leaks: nodeLeaks},
}

var nodeLeaks = []string{"ECONNRESET", "MongoNetworkError"}

func strangerNamed(name string) stranger {
	return strangers[slices.IndexFunc(strangers, func(s stranger) bool { return s.name == name })]
}

func startPython(t *testing.T, uri string) (io.WriteCloser, io.Reader) {
	name, ok := python()
	needed(t, "pymongo", "no python3 has the module pymongo", ok)
	return program(t, nil, name, "python/puppet.py", uri)
}

func startNode(t *testing.T, uri string) (io.WriteCloser, io.Reader) {
	needed(t, "node", "there is no node", works("node", "--version"))
	needed(t, "node", "the npm package mongodb is not in interop/node/node_modules", exists("node/node_modules/mongodb"))
	return program(t, nil, "node", "node/puppet.mjs", uri)
}

func startPHP(t *testing.T, uri string) (io.WriteCloser, io.Reader) {
	needed(t, "php", "there is no php with the extension mongodb", works("php", "-r", "exit(extension_loaded('mongodb') ? 0 : 1);"))
	return program(t, nil, "php", "php/puppet.php", uri)
}

func startMongosh(t *testing.T, uri string) (io.WriteCloser, io.Reader) {
	return program(t, mongoshHome(t), "node", mongosh, "--quiet", uri, "--file", "mongosh/puppet.js")
}
