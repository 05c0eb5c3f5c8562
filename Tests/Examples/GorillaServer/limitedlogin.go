package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"regexp"
	"time"
)

var (
	client    = &http.Client{Timeout: 10 * time.Second}
	verifyURL = setting("VERIFY_URL", `^https?://.*[^/]$`, "the address of limited-login, such as http://127.0.0.1:8080")
	verifyKey = setting("VERIFY_KEY", `.`, "this server's key at limited-login")
)

// setting reads an environment variable. A wrong one ends the start.
func setting(name, pattern, meaning string) string {
	value := os.Getenv(name)
	if !regexp.MustCompile(pattern).MatchString(value) {
		log.Fatalf("%s must be %s.", name, meaning)
	}
	return value
}

type object map[string]any

// verification is the part of the answer to a good token that this server needs.
type verification struct {
	Profile struct {
		UserID string `json:"user_id"`
		Name   string `json:"name"`
	} `json:"profile"`
}

// failure is an answer for the client. Any other error is an outage.
type failure struct {
	Status     int
	Code, Hint string
}

func (f failure) Error() string { return f.Code + " " + f.Hint }

// ask asks limited-login. A 400 or 401 is about the token. Anything else is an outage and ends no session: 503.
func ask(path string, members object, answer any) error {
	text, err := json.Marshal(members)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodPost, verifyURL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", verifyKey)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(answer)
	}
	var problem failure
	if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
		return err
	}
	// `unauthorized_client` is about this server's own key, not about the token.
	if (problem.Status == 400 || problem.Status == 401) && problem.Code != "unauthorized_client" {
		return problem
	}
	return errors.New(problem.Error())
}
