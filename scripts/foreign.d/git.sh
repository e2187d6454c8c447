# what: git's porcelain: commits, merge, rebase, worktree, clone and fetch over file://, gc
# needs: git
# quick: yes
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
export GIT_CONFIG_NOSYSTEM=1
git config --global user.name A; git config --global user.email a@example.org; git config --global init.defaultBranch main
set -e
git init -q origin && cd origin
for i in 1 2 3 4; do echo "line $i" >>story; git add story; git commit -qm "commit $i"; done
git checkout -qb side HEAD~2 && echo side >other && git add other && git commit -qm side
git rebase -q main
git checkout -q main && git merge -q --no-edit side
git worktree add -q ../tree side && git -C ../tree log --oneline
cd .. && git clone -q "file://$PWD/origin" clone
(cd origin && echo more >>story && git commit -qam more)
git -C clone pull -q --ff-only && git -C clone log --stat --format='%h %s'
git -C clone stash list; echo dirty >>clone/story; git -C clone stash -q; git -C clone stash pop -q
git -C clone gc -q && git -C clone fsck --strict
git -C clone repack -adq --threads=2
find . -name index -path '*.git*' -delete # it holds the times of its files
