# what: the files that git's tests need besides the installed git: their helper, templates, and the options of the build
make -j2 NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_OPENSSL=1 NO_PYTHON=1 NO_TCLTK=1 CFLAGS='-O0 -g0' t/helper/test-tool GIT-BUILD-OPTIONS
make -C templates
