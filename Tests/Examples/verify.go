// Asks limited-login about a login, whose nonce comes from your session:
//
//	VERIFY_URL=http://127.0.0.1:8080 VERIFY_KEY=... go run verify.go TOKEN nonce NONCE
//
// `verify TOKEN subject USER` asks about the refreshed token of your session's user; `verify TOKEN` about an access token.
// Exit code 0 accepted, 1 refused, 3 no verdict now (keep the session and try again), 64 wrong call.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

type answer struct {
	Profile struct {
		UserID string `json:"user_id"`
		Name   string `json:"name"`
		Email  string `json:"email"`
	} `json:"profile"`
}

// refused is the answer to a bad token; Code is stable. Any other error means that there is no verdict now.
type refused struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (r *refused) Error() string { return r.Code + ": " + r.Detail }

var client = &http.Client{Timeout: 10 * time.Second}

// verify gives the answer to a good token. The value of the binding, "nonce" or "subject", comes from the session, never
// from the client. An access token alone has none.
func verify(token string, binding ...string) (*answer, error) {
	base := os.Getenv("VERIFY_URL")
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	members := map[string]string{"access_token": token}
	if strings.HasPrefix(token, "eyJ") {
		members = map[string]string{"id_token": token}
	}
	if len(binding) == 2 {
		members[binding[0]] = binding[1]
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
	if response.StatusCode == http.StatusOK {
		accepted := &answer{}
		return accepted, json.NewDecoder(response.Body).Decode(accepted)
	}
	problem := &refused{}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil {
		return nil, err
	}
	// This server's own key is missing or wrong: an outage, not a refusal.
	if problem.Code == "unauthorized_client" {
		return nil, errors.New("set VERIFY_KEY to a key that the service knows")
	}
	if response.StatusCode == http.StatusUnauthorized {
		return nil, problem
	}
	return nil, errors.New(problem.Error())
}

func main() {
	if len(os.Args) != 2 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: verify TOKEN [nonce NONCE | subject USER]")
		os.Exit(64)
	}
	accepted, err := verify(os.Args[1], os.Args[2:]...)
	var refusal *refused
	if errors.As(err, &refusal) {
		fmt.Fprintln(os.Stderr, refusal)
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println(accepted.Profile.UserID, accepted.Profile.Name)
}
