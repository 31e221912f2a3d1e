package plan

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"firstbreach/internal/strictyaml"
)

// maxSecret is the largest secret file that is read, in bytes.
const maxSecret = 64 << 10

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsZero reports whether the plan names no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Value reads the secret, without white space around it; "" without an error when the plan names
// none. Never log or keep what it returns. The error names the variable or the file.
func (s Secret) Value() (string, error) {
	var text, where string
	switch {
	case s.Env != "":
		where = "environment variable " + s.Env
		text = os.Getenv(s.Env)
	case s.File != "":
		where = "file " + s.File
		info, err := os.Stat(s.File)
		if err == nil && info.Size() > maxSecret {
			return "", fmt.Errorf("target.api_key: %s is too large for a key (%d bytes)", where, info.Size())
		}
		b, err := os.ReadFile(s.File)
		if err != nil {
			return "", fmt.Errorf("target.api_key: %s can't be read: %w", where, plainCause(err))
		}
		text = string(b)
	default:
		return "", nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", fmt.Errorf("target.api_key: %s is empty: put the key there, or remove api_key from the plan", where)
	}
	if strings.ContainsAny(text, "\r\n\x00") {
		return "", fmt.Errorf("target.api_key: %s holds more than one line", where)
	}
	return text, nil
}

// String says where the secret comes from in one word. Even the name is left away: people paste keys
// where names belong.
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "redacted (env)"
	case s.File != "":
		return "redacted (file)"
	}
	return "none"
}

// GoString is String, so that %#v shows no more.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, so that JSON and YAML show no more.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// secret reads {env: NAME} or {file: PATH}. No message repeats what was written.
func (r *reader) secret(v strictyaml.Value) Secret {
	if v.IsScalar() {
		v.Reject("must not be written into the plan, which is kept with every run", "put the key into an environment variable and write {env: NAME}, or into a file and write {file: PATH}")
		return Secret{}
	}
	m := v.Map("env", "file")
	env, file := m.Get("env"), m.Get("file")
	if v.IsMap() && env.Present() == file.Present() {
		v.Reject("must name exactly one of env and file", "write {env: NAME} or {file: PATH}")
		return Secret{}
	}
	if name, ok := env.NonEmpty(); ok {
		if !envName.MatchString(name) {
			env.Reject("is not the name of an environment variable", "write a name such as OPENAI_API_KEY, never the key itself")
			return Secret{}
		}
		return Secret{Env: name}
	}
	name, ok := file.NonEmpty()
	if !ok {
		return Secret{}
	}
	path := r.path(name)
	f, err := os.Open(path)
	if err != nil {
		file.Reject(fmt.Sprintf("can't be read: %v", plainCause(err)), "write the path of a file that holds the key, relative to the plan")
		return Secret{}
	}
	f.Close()
	return Secret{File: path}
}
