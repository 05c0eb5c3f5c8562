// Asks limited-login about an id token, or without a nonce about an access token.
//
//	VERIFY_URL=http://127.0.0.1:8080 go run verify.go TOKEN [NONCE]      exit code 0 accepted, 1 refused, 3 try again
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

type answer struct {
	Profile struct {
		UserID string `json:"user_id"`
		Name   string `json:"name"`
		Email  string `json:"email"`
	} `json:"profile"`
}

// problem is a refusal (RFC 9457); Code is stable.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return p.Code + ": " + p.Detail }

var client = &http.Client{Timeout: 10 * time.Second}

// verify judges an id token by the nonce of its login; without one the token is an access token.
func verify(token, nonce string) (*answer, error) {
	base := os.Getenv("VERIFY_URL")
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	members := map[string]string{"access_token": token}
	if nonce != "" {
		members = map[string]string{"id_token": token, "nonce": nonce}
	}
	body, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, base+"/verify", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("VERIFY_KEY"); key != "" {
		request.Header.Set("X-Api-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		refusal := &problem{Status: response.StatusCode}
		if err := json.NewDecoder(response.Body).Decode(refusal); err != nil {
			return nil, err
		}
		return nil, refusal
	}
	accepted := &answer{}
	return accepted, json.NewDecoder(response.Body).Decode(accepted)
}

func main() {
	nonce := ""
	if len(os.Args) > 2 {
		nonce = os.Args[2]
	}
	accepted, err := verify(os.Args[1], nonce)
	if refusal, ok := err.(*problem); ok && refusal.Status < 500 && refusal.Status != http.StatusTooManyRequests {
		fmt.Fprintln(os.Stderr, refusal)
		os.Exit(1)
	}
	if err != nil {
		// Nobody can tell in an outage (5xx, and 429 of Facebook) whether the token is good, so nobody is logged out for it.
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println(accepted.Profile.UserID, accepted.Profile.Name)
}
