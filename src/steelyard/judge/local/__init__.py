"""The local judge: a lexical verifier over words and static word vectors."""
