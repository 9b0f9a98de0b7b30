package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sextantdb/sextant/conformance/corpus"
)

// corpusFile returns a file of the specification "benchmarking", which keeps its data in archives.
func corpusFile(archive, name string) ([]byte, error) {
	dir, err := corpus.Dir("benchmarking")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "data", archive+".tgz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no %s in %s", name, archive)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		if h.Name == archive+"/"+name {
			return io.ReadAll(tr)
		}
	}
}
