# what: what git's tests need beside the git that is installed: their helper, templates, and how git was built
make -j2 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_PYTHON=1 NO_TCLTK=1 CFLAGS='-O0 -g0' t/helper/test-tool GIT-BUILD-OPTIONS
make -C templates
