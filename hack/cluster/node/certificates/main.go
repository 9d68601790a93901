// Command certificates makes the keys and certificates of one cluster.
//
//	certificates DIRECTORY NODE_NAME NODE_IP SERVICE_IP
//
// It writes ca, apiserver, kubelet, and a client certificate per component (NAME.crt, NAME.key, PEM), and the key pair
// that signs service account tokens (service-accounts.key, service-accounts.pub).
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	validFor = 10 * 365 * 24 * time.Hour
	// Certificates are valid from a little before now, for clocks that are not quite equal.
	clockSkew = time.Hour
)

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

type subject struct {
	name          string
	commonName    string
	organizations []string
	dnsNames      []string
	addresses     []net.IP
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: certificates DIRECTORY NODE_NAME NODE_IP SERVICE_IP")
		os.Exit(2)
	}
	if err := makeAll(os.Args[1], os.Args[2], net.ParseIP(os.Args[3]), net.ParseIP(os.Args[4])); err != nil {
		fmt.Fprintln(os.Stderr, "certificates:", err)
		os.Exit(1)
	}
}

func makeAll(directory, node string, nodeIP, serviceIP net.IP) error {
	ca, err := makeAuthority(directory)
	if err != nil {
		return err
	}
	loopback := net.IPv4(127, 0, 0, 1)
	for _, s := range []subject{
		{
			name:       "apiserver",
			commonName: "kube-apiserver",
			dnsNames: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			addresses: []net.IP{nodeIP, serviceIP, loopback},
		},
		{
			name:          "kubelet",
			commonName:    "system:node:" + node,
			organizations: []string{"system:nodes"},
			dnsNames:      []string{node},
			addresses:     []net.IP{nodeIP, loopback},
		},
		{name: "admin", commonName: "admin", organizations: []string{"system:masters"}},
		{name: "apiserver-to-kubelet", commonName: "kube-apiserver-kubelet-client", organizations: []string{"system:masters"}},
		{name: "controller-manager", commonName: "system:kube-controller-manager"},
		{name: "scheduler", commonName: "system:kube-scheduler"},
		{name: "proxy", commonName: "system:kube-proxy"},
		{name: "coredns", commonName: "system:coredns"},
	} {
		if err := ca.issue(directory, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return makeTokenKeys(directory)
}

func makeAuthority(directory string) (authority, error) {
	key, err := newKey()
	if err != nil {
		return authority{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "fairway-cluster"})
	if err != nil {
		return authority{}, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return authority{}, err
	}
	return authority{certificate, key}, writePair(directory, "ca", der, key)
}

func (a authority) issue(directory string, s subject) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	template, err := newTemplate(pkix.Name{CommonName: s.commonName, Organization: s.organizations})
	if err != nil {
		return err
	}
	template.DNSNames = s.dnsNames
	template.IPAddresses = s.addresses
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writePair(directory, s.name, der, key)
}

func makeTokenKeys(directory string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(directory, "service-accounts.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(directory, "service-accounts", key)
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func newTemplate(name pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(validFor),
	}, nil
}

func writePair(directory, name string, certificate []byte, key *ecdsa.PrivateKey) error {
	if err := writePEM(filepath.Join(directory, name+".crt"), "CERTIFICATE", certificate); err != nil {
		return err
	}
	return writeKey(directory, name, key)
}

func writeKey(directory, name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(directory, name+".key"), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
