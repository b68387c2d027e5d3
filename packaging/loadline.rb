# Homebrew formula (Linux). `cargo xtask release` fills in version, addresses and sums.
class Loadline < Formula
  desc "Finds how much a JVM in a container can carry"
  version "@VERSION@"
  license "Apache-2.0"
  depends_on :linux

  on_intel do
    url "@ADDRESS@/loadline-@VERSION@-x86_64.tar.gz"
    sha256 "@SHA256_X86_64@"
  end
  on_arm do
    url "@ADDRESS@/loadline-@VERSION@-aarch64.tar.gz"
    sha256 "@SHA256_AARCH64@"
  end

  def install
    bin.install "loadline", "loadline-launch"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/loadline.bash" => "loadline"
    zsh_completion.install "completions/_loadline"
    fish_completion.install "completions/loadline.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/loadline --version")
  end
end
