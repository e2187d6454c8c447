# what: gpg makes a key, signs, encrypts and decrypts, through its agent
# needs: gpg gpg-agent
# limit: 120
# of: plain2 plain
export GNUPGHOME=$HOME/g; mkdir -m 700 "$GNUPGHOME"; echo secret >plain
gpg -q --batch --passphrase '' --quick-gen-key 'A <a@example.org>' default default never 2>/dev/null; echo $?
gpg -q --batch --trust-model always -r a@example.org -o c -e plain; gpg -q --batch -o plain2 -d c 2>/dev/null; cmp plain plain2 && echo same
gpg -q --batch -s -o s plain && gpg -q --verify s 2>&1 | grep -c Good
gpgconf --kill all; rm -f c s
