// Command probe runs in a pod and asks the API server what programs in pods do: at
// the service's address, with the service account's token.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"
)

const secrets = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	if err := ask(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// ask prints the status of the answer for a path.
func ask(path string) error {
	ca, err := os.ReadFile(secrets + "ca.crt")
	if err != nil {
		return err
	}
	token, err := os.ReadFile(secrets + "token")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	req, err := http.NewRequest(http.MethodGet, "https://"+os.Getenv("KUBERNETES_SERVICE_HOST")+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+string(token))
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	return nil
}
