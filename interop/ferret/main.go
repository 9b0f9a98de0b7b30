// Command ferret serves FerretDB v1, a server of the MongoDB protocol that nobody here wrote, from the folder that it is
// given, and prints its URI. It is a process and a module of its own: FerretDB may crash or hang its host (a find by
// {$mod: 1} does), and brings some fifty modules along. It ends when its standard input does, so that it never outlives who started it,
// and without a farewell: closing FerretDB in good order may take seconds, or for ever.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ferret FOLDER")
		os.Exit(2)
	}
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "ferret:", err)
		os.Exit(1)
	}
}

func serve(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: "file:" + folder + "/", // in memory one open cursor would stop every write
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	go f.Run(context.Background())
	fmt.Println(f.MongoDBURI())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
