package interop

import (
	"os"
	"path/filepath"
	"testing"
)

// mongosh is the program, for node to run.
const mongosh = "node/node_modules/mongosh/bin/mongosh.js"

// mongoshHome is an environment in which mongosh keeps its files in a folder of the test's, and asks nobody for news.
func mongoshHome(t *testing.T) []string {
	t.Helper()
	needed(t, "mongosh", "there is no node", works("node", "--version"))
	needed(t, "mongosh", "the npm package mongosh is not in interop/node/node_modules", exists(mongosh))
	home := t.TempDir()
	folder := filepath.Join(home, ".mongodb", "mongosh")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := `{"enableTelemetry":false,"updateURL":"","disableLogging":true,"disableGreetingMessage":true}`
	if err := os.WriteFile(filepath.Join(folder, "config"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "NODE_NO_WARNINGS=1"}
}
