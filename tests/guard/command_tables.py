"""Command lines for tests of the gate: safe ones, others, and such that would leave the file `M` if any part of them ran."""

from __future__ import annotations

MARKER = "M"

SAFE = r"""
pwd
pwd -P
ls
ls -la
ls -la src
ls -1 src
ls --all --human-readable
ls -- src
cat a.txt
cat -n a.txt src/b.py
cat 'with blank.txt'
cat "with blank.txt"
cat ./src/../a.txt
cat src//b.py
cat missing.txt
cat größe.txt
head a.txt
head -5 a.txt
head -n 5 a.txt
head -n5 a.txt
head -c 100 a.txt
tail -n +3 a.txt
tail -20 a.txt
wc -l a.txt src/b.py
wc
nl -ba a.txt
stat a.txt
stat -c '%s %n' a.txt
cut -d: -f1 a.txt
cut -f 1,2 a.txt
echo hello
echo -n hello
echo 'single $HOME `id`'
echo -e 'a\tb'
true
false
whoami
uname -a
which ls
basename a.txt .txt
dirname src/b.py
tr a-z A-Z
tr -d '\r'
tr / _
grep hello a.txt
grep -n 'hel*o$' a.txt
grep -e hello -e world a.txt
grep -A3 -B 3 hello a.txt
grep --line-number --ignore-case HELLO a.txt
grep -c / a.txt
cat a.txt | grep hello | wc -l
ls && pwd
ls; pwd; whoami
ls || true
cat a.txt | head -3 | tail -1
cat a.txt⏎ls
ls src && cat a.txt | tr a-z A-Z
"""

NOT_SAFE = r"""
ls /
ls ..
ls ~
ls *
ls [ab].txt
ls ?.txt
ls $HOME
ls src/../..
ls out
ls -L out
cat /etc/passwd
cat ../x
cat out/x
cat *.txt
cat a.tx?
cat .env
cat .git/config
cat sub/.env
cat link-to-env
cat src/deep/../../../x
head -n 5 /etc/passwd
head --lines=5 a.txt
tail -f a.txt
tail --follow a.txt
tail --pid 1 a.txt
wc --files0-from names
wc --files0-from=names
wc -l < a.txt
stat -L out
grep -f /etc/passwd a.txt
grep -f.env a.txt
grep -nf.env a.txt
grep --file .env a.txt
grep --fi .env a.txt
grep -r hello .
grep -R hello
grep -dr hello .
grep -drecurse hello .
grep --recursive hello .
grep --rec hello .
grep --directories recurse hello
grep --include='*.py' hello a.txt
grep hello .env
grep -e x /etc/passwd
grep -e -- /etc/passwd
grep --regexp -- /etc/passwd
grep -ie -- .env
grep -e x /no/such/file
grep /no/such/file -e x
grep -C 3 /etc/passwd a.txt
head -n -- /etc/passwd
basename --multiple a b
which -s ls
pwd -x
tr --truncate-set1 a b
cut --output-delimiter=x -f1 a.txt
/bin/ls
./ls
\ls
l\s
'' ls
ls -la > /dev/null
ls 2>&1
cat < a.txt
cat <<< x
cat <<EOF⏎x⏎EOF
ls &
(ls)
{ ls; }
! ls
time ls
A=1 ls
LC_ALL=C ls
if ls; then pwd; fi
for f in a; do cat a.txt; done
ls # comment
echo $HOME
echo "$HOME"
echo ~
echo {a,b}
echo a\ b
echo `pwd`
echo $(pwd)
cd src
cd src && ls
cd .. && ls
pushd src
git status
git log
git diff
git --version
find .
rg hello
sed -n 1p a.txt
awk 1 a.txt
sort a.txt
date
env
printenv
less a.txt
file a.txt
tree
du -sh
jq . a.json
python --version
npm test
make
test -e a.txt
[ -e a.txt ]
printf x
type ls
command ls
exec ls
env ls
nice ls
xargs ls
sudo ls
watch ls
timeout 5 ls
bash -c ls
eval ls
source a.txt
. a.txt
ls-la
cat a.txt | sort
cat a.txt | tee
ls⏎make
ls;make
ls|sh
pytest -q | tail -n 20
"""

HOSTILE = r"""
! touch M
! ls && touch M
! ls ; touch M
! ls;touch M
! ls | touch M
! ls || touch M; touch M
! ls & touch M
! ls⏎touch M
! cat missing || touch M
! echo $(touch M)
! echo `touch M`
! echo "$(touch M)"
! echo "`touch M`"
! echo "a$(touch M)b"
! cat <(touch M)
! echo ${x:-$(touch M)}
! echo $((a[$(touch M)]))
! echo "${x:-`touch M`}"
! cat <<EOF⏎$(touch M)⏎EOF
! cat <<EOF⏎`touch M`⏎EOF
! cat <<< $(touch M)
! cat <<< "`touch M`"
! echo x > M
! echo x >> M
! echo x >| M
! echo x &> M
! echo x &>> M
! ls missing 2> M
! cat <> M
! echo x 1>M
! echo x >M
! >M
! echo x | tee M
! ls > >(tee M)
! (touch M)
! { touch M; }
! ! touch M
! if touch M; then ls; fi
! while touch M; do break; done
! for i in $(touch M); do ls; done
! case $(touch M) in x) ;; esac
! f() { touch M; }; f
! A=$(touch M) ls
! A=$(touch M)
! export A=$(touch M)
! test -v 'a[$(touch M)]'
! [ -v 'a[$(touch M)]' ]
! [[ 'a[$(touch M)]' -eq 1 ]]
! printf -v 'a[$(touch M)]' x
! read 'a[$(touch M)]' <<< x
! eval 'touch M'
! bash -c 'touch M'
! sh -c 'touch M'
! exec touch M
! command touch M
! env touch M
! nice touch M
! nohup touch M
! timeout 5 touch M
! xargs touch M
! echo M | xargs touch
! find . -maxdepth 0 -exec touch M ';'
! find . -maxdepth 0 -exec touch M {} +
! find . -maxdepth 0 -fprint M
! sort -o M a.txt
! sed -n 'w M' a.txt
! sed w\ M a.txt
! awk 'BEGIN{system("touch M")}'
! awk 'BEGIN{print "x" > "M"}'
! trap 'touch M' EXIT; ls
! trap 'touch M' EXIT⏎ls
! t\ouch M
! 'touch' M
! "touch" M
! to''uch M
! t"ou"ch M
! $'touch' M
! x=touch; $x M
! {touch,M}
! ls "$(touch M)" 2>/dev/null
! echo 'a' "$(touch M)"
! ls;#⏎touch M
! ls #⏎touch M
! cat a.txt;touch M
! ls -la|touch M
! ls -la||touch M;touch M
! cd src && touch ../M
! cd src; touch ../M
! pushd src && touch ../M
! touch M # ls
! time touch M
! coproc touch M; wait
! alias ls='touch M'⏎shopt -s expand_aliases⏎ls
! printf 'touch M' | sh
! cp a.txt M
! ln -s a.txt M
! mkdir M
! dd if=a.txt of=M
! install a.txt M
! python3 -c 'open("M","w")'
! printf -v PATH ./evil; ls
! hash -p ./evil/ls ls; ls
! shopt -s extglob⏎echo @(a) $(touch M)
! declare -x PATH=./evil; ls
! mapfile -t -C 'touch M; :' -c 1 x < a.txt
! compgen -C 'touch M' x
! builtin eval 'touch M'
! source evil/ls
! . evil/ls
! bash evil/ls
! ./evil/ls
"""


def table(text: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in text.strip("\n").split("\n")]


HOSTILE_LINES = [line[2:] for line in table(HOSTILE)]
