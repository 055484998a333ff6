package config

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"time"

	"github.com/cloudshare/cloudshare/cmd/cloudshare/internal/cli"
	"github.com/cloudshare/cloudshare/node/coord/zk"
)

// The coordination backends, and the folders of their files inside the data
// directory.
const (
	Raft        = "raft"
	ZooKeeper   = "zookeeper"
	RaftDir     = "raft"
	ZKDir       = "zk"
	KeyFile     = "key"      // the site's key: a secret
	NextKeyFile = "key.next" // the one that is to follow it, while it is replaced
	// FormerKeyFile is the key of before, until the log shows that the federation has the next one.
	FormerKeyFile = "key.former"
	SecretFile    = "payload.key" // what this site's jobs are sealed with: a copy of the journal's
	NextSecret    = SecretFile + ".next"
	RosterFile    = "roster"   // who the members are, as this broker has seen last
	DivergedDir   = "diverged" // states of a broker that stopped because its own differs
	EvidenceDir   = "evidence" // what other sites have signed, where that differs
)

// zkSession returns the session timeout asked for.
func (c Config) zkSession() time.Duration {
	if c.ZKSession == 0 {
		return zk.DefaultSession
	}
	return c.ZKSession
}

// ZKPlace returns where the tree is, with the credentials of the file.
func (c Config) ZKPlace() (zk.Place, error) {
	p, err := zk.ParsePlace(c.ZK)
	if err != nil {
		return p, cli.Usage("zk: %w", err)
	}
	if p.User, p.Password, p.Former, err = readDigest(c.ZKAuth); err != nil {
		return p, err
	}
	p.Session = c.zkSession()
	if p.TLS, err = c.zkTLS(); err != nil {
		return p, err
	}
	return p, nil
}

// readDigest reads the credentials, which nobody else may; former is "" unless there is a second line.
func readDigest(path string) (user, password, former string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", "", cli.Usage("zk_auth: %w: write one line USER:PASSWORD into a file that only you can read", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", "", "", cli.Usage("zk_auth %s: others can read or write it: chmod 600 %s", path, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", "", cli.Usage("zk_auth: %w", err)
	}
	now, former, two := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if !isDigest(now) || two && !isDigest(former) || len(text) > 1024 {
		return "", "", "", cli.Usage("zk_auth %s: must be one line USER:PASSWORD, or the former one in a second line while it is replaced", path)
	}
	user, password, _ = strings.Cut(now, ":")
	return user, password, former, nil
}

// isDigest reports whether a line is USER:PASSWORD.
func isDigest(line string) bool {
	user, password, found := strings.Cut(line, ":")
	return found && user != "" && password != "" && !strings.ContainsAny(line, "\n\r")
}

// zkTLS is nil for plain connections.
func (c Config) zkTLS() (*tls.Config, error) {
	if !c.ZKTLS {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ZKTLSCA != "" {
		text, err := os.ReadFile(c.ZKTLSCA)
		if err != nil {
			return nil, cli.Usage("zk_tls_ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, cli.Usage("zk_tls_ca %s: there is no certificate in it, in PEM form", c.ZKTLSCA)
		}
	}
	if c.ZKTLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.ZKTLSCert, c.ZKTLSKey)
		if err != nil {
			return nil, cli.Usage("zk_tls_cert, zk_tls_key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// CheckCoordination touches nothing outside.
func (c Config) CheckCoordination() error {
	given := c.ZK != "" || c.ZKAuth != "" || c.ZKTLS || c.ZKInsecure || c.ZKTLSCA != "" || c.ZKTLSCert != "" || c.ZKTLSKey != ""
	switch {
	case c.Coordination != Raft && c.Coordination != ZooKeeper:
		return cli.Usage("coordination %q: must be raft or zookeeper", c.Coordination)
	case c.Coordination == Raft && given:
		return cli.Usage("zk and zk_… are for --coordination zookeeper only")
	case c.Coordination == Raft:
		return nil
	case c.ZK == "":
		return cli.Usage("zk is missing: name the ensemble and the federation's path in it, such as --zk zk1:2181,zk2:2181,zk3:2181/cloudshare")
	case c.ZKAuth == "":
		return cli.Usage("zk_auth is missing: name a file with one line USER:PASSWORD; the federation's tree is for its holders alone")
	case !c.ZKTLS && (c.ZKTLSCA != "" || c.ZKTLSCert != "" || c.ZKTLSKey != ""):
		return cli.Usage("zk_tls_ca, zk_tls_cert and zk_tls_key need --zk-tls")
	case (c.ZKTLSCert == "") != (c.ZKTLSKey == ""):
		return cli.Usage("zk_tls_cert and zk_tls_key belong together")
	case c.ZKSession < 0:
		return cli.Usage("zk_session %s: must not be negative", c.ZKSession)
	}
	list, _, _ := strings.Cut(c.ZK, "/")
	servers := strings.Split(list, ",")
	if err := CheckDialed("zk", servers); err != nil {
		return err
	}
	for _, text := range servers {
		if at, err := parseAddress(text); !c.ZKTLS && !c.ZKInsecure && (err != nil || !at.loopback()) {
			return cli.Usage("zk %s is not on loopback, and without TLS anybody between can read the federation's password: "+
				"use the ensemble's TLS port and --zk-tls, or --zk-insecure on a network that you trust", text)
		}
		if key := c.ownKey(text); key != "" {
			return cli.Usage("zk %s: that is this broker's own %s, and no ZooKeeper server: name the ensemble's servers", text, key)
		}
	}
	if _, err := zk.ParsePlace(c.ZK); err != nil {
		return cli.Usage("zk: %w", err)
	}
	return nil
}
