package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sextantdb/sextant/replset"
	"github.com/spf13/cobra"
)

func serveCommand() *cobra.Command {
	var members, port int
	var auth, dbpath, version string
	var verbose, secure, certified bool
	var balancer int
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run an embedded replica set for development, until interrupted",
		Long: "Run an embedded replica set for development and tests until interrupted. Its URI is the first line printed. " +
			"Data is in memory and ends with the process, unless --dbpath names a folder to keep it in.",
		Args: exactly(0),
	}
	c.Flags().IntVar(&members, "members", 3, "how many members, 1 to 7")
	c.Flags().IntVar(&port, "port", 27017, "the first member's port; the others follow it; 0 takes free ones")
	c.Flags().StringVar(&auth, "auth", "", "demand authentication as `user:password`; whoever logs in may do everything")
	c.Flags().StringVar(&dbpath, "dbpath", "", "keep the data in this `folder`, and go on with what is there")
	c.Flags().StringVar(&version, "version", "8.0", "the server version to claim: 4.0, 4.2, 4.4, 5.0, 6.0, 7.0 or 8.0")
	c.Flags().IntVar(&balancer, "load-balancer", -1, "the `port` of a load balancer with two services before the set, 0 for a free one")
	c.Flags().BoolVar(&secure, "tls", false, "speak TLS, with certificates of its own: in the data folder, or in a temporary one")
	c.Flags().BoolVar(&certified, "tls-client", false, "demand client certificates too; implies --tls")
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "log elections and refused connections to standard error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := serveOptions(members, port, auth, version)
		if err != nil {
			return usageError{err}
		}
		o.Dir = dbpath
		if balancer > 65535 {
			return usageError{fmt.Errorf("--load-balancer %d: a port is at most 65535", balancer)}
		}
		if balancer >= 0 {
			o.LoadBalancer = &replset.LoadBalancerOptions{Port: balancer}
		}
		if secure || certified {
			dir, end, err := certificateFolder(dbpath)
			if err != nil {
				return err
			}
			defer end()
			o.TLS = &replset.TLS{Dir: dir, ClientCertificates: certified}
		}
		if verbose {
			o.Logger = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
		}
		return serve(c, o)
	}
	return c
}

// certificateFolder is where the set's certificates are: they stay with the data, or end with the process.
func certificateFolder(dbpath string) (dir string, end func(), err error) {
	if dbpath != "" {
		dir, err = filepath.Abs(filepath.Join(dbpath, "tls"))
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", "sextant-tls-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// serveOptions checks the flags. The password never appears in an error.
func serveOptions(members, port int, auth, version string) (replset.Options, error) {
	o := replset.Options{SetName: "rs0", Version: version}
	if !slices.Contains(replset.Versions(), version) {
		return o, fmt.Errorf("--version %s: there are %s", version, strings.Join(replset.Versions(), ", "))
	}
	if members < 1 || members > 7 {
		return o, fmt.Errorf("--members %d: a set has 1 to 7", members)
	}
	if port < 0 || port+members-1 > 65535 {
		return o, fmt.Errorf("--port %d: %d ports from there do not fit below 65536", port, members)
	}
	o.Config = make([]replset.MemberOptions, members)
	for i := range o.Config {
		if port > 0 {
			o.Config[i].Port = port + i
		}
	}
	if auth != "" {
		user, password, ok := strings.Cut(auth, ":")
		if !ok || user == "" || password == "" {
			return o, errors.New("--auth wants user:password, both not empty")
		}
		o.Users = []replset.User{{Name: user, Password: password, DB: "admin"}}
	}
	return o, nil
}

func serve(c *cobra.Command, o replset.Options) error {
	ctx := c.Context()
	set, err := replset.Start(ctx, o)
	if err != nil {
		return err
	}
	defer set.Close()
	fmt.Fprintln(c.OutOrStdout(), set.URI())
	primary, err := set.WaitPrimary(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return err
	}
	if l := set.LoadBalancer(); l != nil {
		fmt.Fprintf(c.OutOrStdout(), "through the load balancer: %s\n", l.URI())
	}
	if o.TLS != nil {
		sayTLS(c.OutOrStdout(), set, o)
	}
	if len(o.Users) > 0 {
		fmt.Fprintf(c.OutOrStdout(), "log in as %s, authSource=admin\n", o.Users[0].Name)
	}
	where := "in memory"
	if o.Dir != "" {
		where = "data in " + o.Dir
	}
	fmt.Fprintf(c.OutOrStdout(), "%d member(s), primary %s, %s: for development and tests. Stop with Ctrl-C.\n", len(set.Members()), primary.Addr(), where)
	<-ctx.Done()
	return nil
}

// sayTLS says how clients come to trust the set, and to be trusted.
func sayTLS(w io.Writer, set *replset.Set, o replset.Options) {
	ca, client := set.TLSFiles()
	may := "may"
	if o.TLS.ClientCertificates {
		may = "must"
	}
	fmt.Fprintf(w, "TLS only: clients trust %s (tlsCAFile) and %s show %s (tlsCertificateKeyFile)\n", ca, may, client)
	if o.Dir == "" {
		fmt.Fprintf(w, "these files go with this process; with --dbpath they stay\n")
	}
	fmt.Fprintf(w, "the URI above names what is needed: give it as it is, in quotes, to mongosh, to sextant hosts, to any driver\n")
}
