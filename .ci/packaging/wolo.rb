# For a tap: `make dist` fills in the version, the address and the hash. Packages come as wheels, by the hashes of the sdist.
class Wolo < Formula
  desc "Coding agent for the terminal"
  homepage "@HOMEPAGE@"
  url "@ADDRESS@/wolo_cli-@VERSION@.tar.gz"
  sha256 "@SDIST@"
  license "Apache-2.0"

  depends_on "python@3.13"
  depends_on "git"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    pip = [libexec/"bin/python", "-I", "-m", "pip", "install", "--quiet"]
    pinned = %w[build run].flat_map { |name| ["-r", ".ci/requirements/#{name}.txt"] }
    system(*pip, "--require-hashes", "--only-binary", ":all:", *pinned)
    system(*pip, "--no-deps", "--no-build-isolation", ".")
    bin.install_symlink libexec/"bin/wolo"
    man1.install_symlink libexec/"share/man/man1/wolo.1"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/wolo --version")
  end
end
