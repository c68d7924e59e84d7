# The programs under test are those of a build tree: NOETHER_BUILD, or build/.
setup_suite() {
  NOETHER_BUILD=$(realpath "${NOETHER_BUILD:-$BATS_TEST_DIRNAME/../../build}")
  export NOETHER_BUILD
  export PATH=$NOETHER_BUILD/bin:$PATH
  if [ ! -x "$NOETHER_BUILD/bin/noether" ]; then
    echo "no noether in $NOETHER_BUILD/bin: run make first, or set NOETHER_BUILD" >&2
    return 1
  fi
}
