# `nix-build -E '(import <nixpkgs> {}).callPackage ./wolo.nix {}'`: the folder that needs nothing, so nothing of it is patched.
# `make dist` fills in the version, the address and the hashes of the archives in dist/.
{ lib, stdenvNoCC, fetchurl }:
let
  system = stdenvNoCC.hostPlatform.system;
  machines = {
    x86_64-linux = { name = "x86_64"; sha256 = "@X86_64@"; };
    aarch64-linux = { name = "aarch64"; sha256 = "@AARCH64@"; };
  };
  machine = machines.${system} or (throw "wolo has no folder for ${system}");
in
stdenvNoCC.mkDerivation {
  pname = "wolo";
  version = "@VERSION@";
  src = fetchurl {
    url = "@ADDRESS@/wolo-@VERSION@-linux-${machine.name}.tar.gz";
    sha256 = if machine.sha256 == "" then throw "wolo @VERSION@ has no folder for ${system}" else machine.sha256;
  };
  dontPatchELF = true;
  dontStrip = true;
  dontPatchShebangs = true;
  installPhase = ''
    mkdir -p $out/lib $out/bin
    cp -r . $out/lib/wolo
    ln -s $out/lib/wolo/bin/wolo $out/bin/wolo
  '';
  meta = {
    description = "Coding agent for the terminal";
    homepage = "@HOMEPAGE@";
    license = lib.licenses.asl20;
    platforms = builtins.attrNames machines;
    mainProgram = "wolo";
  };
}
